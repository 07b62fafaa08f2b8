// Arithmetic in float64, where training and serving do with float32: twice the bytes, and half the arithmetic a second
// or less.
#include <optional>
#include <string_view>
#include <utility>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

// Calling it costs so much, whatever the size of its elements.
constexpr std::int64_t kFloat64CallNs = 5'000;

// torch has oneDNN's convolutions for float32; those of float64 unfold their input and multiply, which takes two and a
// half to seven times as long.
constexpr double kLeastOfUnfolded = 0.15, kMostOfUnfolded = 0.4;

// Nor has it an LSTM in one for float64: words come one by one, and forward and backward pass took 3.1 to 8.7 times as
// long for 8 to 64 rows of 32 to 512 units.
constexpr double kLeastOfUnrolled = 0.12, kMostOfUnrolled = 0.33;

struct Left {
  double least = 0.5, most = 0.5;
  std::int64_t call_ns = kFloat64CallNs;
};

// Is it of an LSTM on the host that is given float64, or of its backward pass? Sequences that are packed are done word
// by word in any type.
bool is_of_unrolled(const Case& about, const Work& work) {
  const SliceId call = passes(about).reason(*work.trace, work.operation);
  if (work.device || about.has_device() || work.trace->name(call) != "aten::lstm") return false;
  const OperatorInputs& given = inputs(about).of(*work.trace, call);
  return given.has_type("double") && !given.shapes.empty() && given.shapes[0].sizes.size() == 3;
}

// What float32 leaves of it; nullopt: it is no work on float64. The operator that it is of, as far in as inputs are
// recorded.
std::optional<Left> left_of(const Case& about, const Work& work) {
  if (is_of_unrolled(about, work)) return Left{kLeastOfUnrolled, kMostOfUnrolled, 0};
  const Trace& trace = *work.trace;
  for (SliceId at = work.inside; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) == SliceKind::cpu_op) {
      const OperatorInputs& of = inputs(about).of(trace, at);
      if (of.has_type("double") || of.has_type("c10::complex<double>")) {
        const std::string_view name = trace.name(at);
        if (name.find("slow_conv") != name.npos) return Left{kLeastOfUnfolded, kMostOfUnfolded};
        // From one type to the other: where all is float32, there is nothing to do.
        if (name == "aten::copy_" && of.has_type("float")) return Left{0, 0.5};
        return Left{};
      }
    }
    if (at == work.operation) break;
  }
  return std::nullopt;
}

void find_float64(const Case& about, std::vector<Diagnosis>& out) {
  Gathered operators(about);
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.operation == SliceId::none) continue;
    const std::optional<Left> left = left_of(about, work);
    if (!left) continue;
    operators.add(node, work, work.trace->name(work.operation), left->least, left->most,
                  work.device ? 0 : left->call_ns);
  }
  if (!operators.worth_saying()) return;
  Diagnosis found = operators.diagnosis(
      {.cause = "precision",
       .sentence = "Arithmetic runs in float64: twice the bytes, and at most half the speed of float32",
       .next = "Make inputs and parameters float32: .float() where the data is made (arrays of NumPy are float64), no "
               "torch.set_default_dtype(torch.float64), no .double()"});
  found.rest_stays = true;
  // Where the program makes all of a model so, or asks for it in one place at all, that is what is to be changed.
  const Source& source = about.places.source(about.trace);
  const CodeCall* all = source.only_call("(all float64)");
  if (const CodeCall* asks = all != nullptr ? all : source.only_call("(float64)")) {
    put_call(*asks, found.finding.where);
  }
  out.push_back(std::move(found));
}

}  // namespace

Cause float64_cause() { return {"float64", "Arithmetic in float64", find_float64}; }

}  // namespace stepscope::diagnose::causes
