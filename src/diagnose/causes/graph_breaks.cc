// What is compiled is cut into pieces: between them Python works as if nothing had been compiled.
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnose/gathered.h"
#include "model/compile_names.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {

namespace {

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

}  // namespace

Cause graph_breaks_cause() {
  return {"graph_breaks", "Compiled code in pieces", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr std::size_t kPieces = 3;
            // Regions of a frame and those that go on behind a break are numbered as frames of their own.
            std::set<std::string, std::less<>> frames;
            Gathered between(about);
            std::unordered_map<const Trace*, std::vector<SliceId>> regions;
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (work.device || work.slice == SliceId::none) return;
              const Trace& trace = *work.trace;
              const auto [of, is_new] = regions.try_emplace(&trace);
              if (is_new) of->second = regions_around(trace);
              const SliceId at = of->second[static_cast<std::size_t>(work.slice)];
              if (at == SliceId::none) return;
              const std::string_view region = compiled_region(trace.name(at));
              frames.emplace(region.substr(0, region.find('/')));
              // Only what is no operator: guards, and the Python that was not compiled.
              if (at == work.slice || work.operation == SliceId::none)
                between.add(node, work, "compiled region", 0.1, 1);
            });
            if (frames.size() < kPieces || !between.worth_saying()) return;
            Diagnosis found = between.diagnosis(
                {.cause = "compile",
                 .sentence = "Compiled code is cut into pieces, and Python works between them",
                 .next = "torch.compile(fullgraph=True) names the lines that cut it; take printing, .item() and NumPy "
                         "out of what is compiled",
                 .doubt = "pieces of one function are told by their names, and why it is cut is not recorded"});
            found.finding.evidence.push_back(
                {.text = "Pieces", .value = static_cast<std::int64_t>(frames.size()), .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
