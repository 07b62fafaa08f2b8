// Arithmetic in float64, where training and serving do with float32: twice the bytes, and half the arithmetic a second
// or less.
#include <algorithm>
#include <map>
#include <utility>

#include "diagnose/cause.h"
#include "diagnose/heaviest.h"
#include "model/input_text.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

// Calling it costs so much, whatever the size of its elements.
constexpr std::int64_t kCallNs = 5'000;

class Types {
 public:
  // Is a tensor of float64 with more than one element among the inputs of the operator?
  bool has_float64(const Trace& trace, SliceId operation) {
    const std::size_t row = row_of(trace.ops.slice, operation);
    if (row == trace.ops.size() || trace.ops.input_types[row] == StringId::none) return false;
    const StringId types = trace.ops.input_types[row], dims = trace.ops.input_dims[row];
    const auto [known, is_new] = verdicts_.try_emplace({&trace, types, dims}, false);
    if (is_new) known->second = dims != StringId::none && judge(trace.strings[types], trace.strings[dims]);
    return known->second;
  }

 private:
  static bool judge(std::string_view types_text, std::string_view dims_text) {
    const std::vector<std::string> types = parse_texts(types_text);
    const std::vector<Shape> shapes = parse_shapes(dims_text);
    for (std::size_t i = 0; i < std::min(types.size(), shapes.size()); i++) {
      if (types[i] == "double" && !shapes[i].sizes.empty()) return true;
    }
    return false;
  }

  std::map<std::tuple<const Trace*, StringId, StringId>, bool> verdicts_;
};

// The operator that the work is of, as far in as inputs are recorded.
bool is_float64(Types& types, const Work& work) {
  const Trace& trace = *work.trace;
  for (SliceId at = work.device ? work.operation : work.slice; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) == SliceKind::cpu_op && types.has_float64(trace, at)) return true;
    if (at == work.operation) break;
  }
  return false;
}

void find_float64(const Case& about, std::vector<Diagnosis>& out) {
  Diagnosis found;
  Heaviest operators;
  Types types;
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.operation == SliceId::none || !is_float64(types, work)) continue;
    const std::int64_t call = work.device ? 0 : std::min(work.cost_ns, kCallNs);
    const std::int64_t half = call + (work.cost_ns - call) / 2;
    found.rewrite.nodes.push_back({node, half, half});
    operators.add(work.trace->name(work.operation), work, about.on_path(node));
  }
  if (about.share(operators.total_ns()) < kWorthSaying) return;
  const Heaviest::Item& most = operators.first();
  Finding& finding = found.finding;
  finding.cause = "precision";
  finding.sentence = "Arithmetic runs in float64: twice the bytes, and at most half the speed of float32";
  finding.where.op = most.name;
  about.put_place(most.example, about.code(most.example), finding.where);
  finding.evidence = {{.text = "Of the steps in operators with float64",
                       .value = about.share(operators.total_ns()),
                       .unit = Unit::ratio},
                      {.text = most.name, .value = about.share(most.ns), .unit = Unit::ratio}};
  finding.confidence = "high";
  finding.next =
      "Make inputs and parameters float32: .float() where the data is made (arrays of NumPy are float64), no "
      "torch.set_default_dtype(torch.float64), no .double()";
  out.push_back(std::move(found));
}

}  // namespace

Cause float64_cause() { return {"float64", "Arithmetic in float64", find_float64}; }

}  // namespace stepscope::diagnose::causes
