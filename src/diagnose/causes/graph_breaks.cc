// What is compiled is cut into pieces: each of them is looked up, entered and left, forwards and backwards, and between
// them Python works as if nothing had been compiled.
#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/passes.h"
#include "model/compile_names.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kPieces = 3;
constexpr double kLeastOfWork = 0.4;     // of what pieces compute: larger ones are fused better
constexpr double kMostOfEntering = 0.2;  // guards of all that is compiled stay

// Per slice: the compiled region around it, itself included; none: there is none.
std::vector<SliceId> regions_around(const Trace& trace) {
  std::vector<SliceId> out(trace.slices.size(), SliceId::none);
  for (const SliceId slice : trace.by_track.span()) {  // parents before children
    const SliceId parent = trace.slices.parent[slice];
    SliceId& found = out[static_cast<std::size_t>(slice)];
    if (!compiled_region(trace.name(slice)).empty()) {
      found = slice;
    } else if (parent != SliceId::none) {
      found = out[static_cast<std::size_t>(parent)];
    }
  }
  return out;
}

// Does it run code that was compiled? Else it is on the way to it, or not compiled at all.
bool in_graph(const Work& work, SliceId until) {
  for (SliceId at = work.slice; at != SliceId::none && at != until; at = work.trace->slices.parent[at]) {
    if (!compiled_graph(work.trace->name(at)).empty()) return true;
  }
  return false;
}

// Where functions are cut, by the names of what goes on behind it: "torch_dynamo_resume_in_forward_at_22".
struct Cut {
  std::string file;
  std::int64_t line = 0;
};

// That with most time behind it first.
std::vector<Cut> cuts_in(const Case& about, const Trace& trace) {
  constexpr std::string_view kResumes = "torch_dynamo_resume_in_", kAt = "_at_";
  std::vector<Cut> out;
  for (const PythonFrame& frame : about.places.called_functions(trace, kResumes)) {
    const std::string_view name = frame.function;
    const std::size_t at = name.rfind(kAt);
    if (at == name.npos) continue;
    const std::string_view digits = name.substr(at + kAt.size());
    std::int64_t line = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), line).ec == std::errc()) {
      out.push_back({frame.file, line});
    }
  }
  return out;
}

struct Pieces {
  Gathered gathered;
  std::set<std::string, std::less<>> frames;  // compiled, by number
};

void add_forward(std::uint32_t node, const Work& work, SliceId region, double least, Pieces& out) {
  const std::string_view id = compiled_region(work.trace->name(region));
  out.frames.emplace(id.substr(0, id.find('/')));
  const bool computes = in_graph(work, region);
  out.gathered.add(node, work, "compiled region", computes ? kLeastOfWork : least, computes ? 1 : kMostOfEntering);
}

// Regions are frames and what goes on behind a cut, which are numbered alike.
std::size_t regions_in(const Trace& trace) {
  std::size_t count = 0;
  for (const SliceId op : trace.ops.slice) {
    if (!compiled_region(trace.name(op)).empty() && trace.step_at(trace.slices.start_ns[op]) != StepId::none) count++;
  }
  return count;
}

void find_pieces(const Case& about, std::vector<Diagnosis>& out) {
  const double per_step = static_cast<double>(regions_in(about.trace)) / static_cast<double>(about.steps);
  if (per_step < 2) return;
  const double one = std::min(1 / per_step, kMostOfEntering);  // of as many, entered one after the other
  Pieces pieces{.gathered = Gathered(about), .frames = {}};
  std::unordered_map<const Trace*, std::vector<SliceId>> regions;
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.device || work.slice == SliceId::none) return;
    const auto [of, is_new] = regions.try_emplace(work.trace);
    if (is_new) of->second = regions_around(*work.trace);
    const SliceId region = of->second[static_cast<std::size_t>(work.slice)];
    if (region != SliceId::none) {
      add_forward(node, work, region, one, pieces);
    } else if (work.operation != SliceId::none && is_backward(work.trace->name(work.operation)) &&
               work.trace->name(work.operation).ends_with("CompiledFunctionBackward")) {
      const bool computes = in_graph(work, work.operation);
      pieces.gathered.add(node, work, "backward of compiled regions", computes ? kLeastOfWork : one,
                          computes ? 1 : kMostOfEntering);
    }
  });
  // Functions that are compiled on their own are pieces as well, which no one cut.
  const std::vector<Cut> cuts = cuts_in(about, about.trace);
  const bool is_cut = !cuts.empty();
  const bool seems_cut = pieces.frames.size() >= kPieces && !about.places.known(about.trace);
  if ((!is_cut && !seems_cut) || !pieces.gathered.worth_saying()) return;
  Diagnosis found = pieces.gathered.diagnosis(
      {.cause = "compile",
       .sentence = "Compiled code is cut into pieces, and Python works between them",
       .next = "torch.compile(fullgraph=True) names the lines that cut it; take printing, .item() and NumPy "
               "out of what is compiled",
       .doubt = is_cut ? "" : "pieces of one function are told by their names, and why it is cut is not recorded"});
  Place& where = found.finding.where;
  if (is_cut) {
    where.file = cuts.front().file;
    where.line = cuts.front().line;
    where.function.reset();
    where.op.reset();
  }
  auto& evidence = found.finding.evidence;
  evidence.push_back({.text = "Pieces", .value = static_cast<std::int64_t>(pieces.frames.size()), .unit = Unit::count});
  evidence.push_back({.text = "Entered per step", .value = static_cast<std::int64_t>(per_step), .unit = Unit::count});
  if (is_cut) {
    evidence.push_back(
        {.text = "Lines that cut", .value = static_cast<std::int64_t>(cuts.size()), .unit = Unit::count});
  }
  out.push_back(std::move(found));
}

}  // namespace

Cause graph_breaks_cause() { return {"graph_breaks", "Compiled code in pieces", find_pieces}; }

}  // namespace stepscope::diagnose::causes
