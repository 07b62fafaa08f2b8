// What is compiled is cut into pieces: between them Python works as if nothing had been compiled.
#include <set>
#include <string>

#include "diagnose/gathered.h"
#include "model/compile_names.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {

Cause graph_breaks_cause() {
  return {"graph_breaks", "Compiled code in pieces", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr std::size_t kPieces = 3;
            // Regions of a frame and those that go on behind a break are numbered as frames of their own.
            std::set<std::string, std::less<>> frames;
            Gathered between(about);
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (work.device) return;
              const Trace& trace = *work.trace;
              for (SliceId at = work.slice; at != SliceId::none; at = trace.slices.parent[at]) {
                const std::string_view region = compiled_region(trace.name(at));
                if (region.empty()) continue;
                frames.emplace(region.substr(0, region.find('/')));
                // Only what is no operator: guards, and the Python that was not compiled.
                if (at == work.slice || work.operation == SliceId::none)
                  between.add(node, work, "compiled region", 0.1, 1);
                break;
              }
            });
            if (frames.size() < kPieces || !between.worth_saying()) return;
            Diagnosis found = between.diagnosis(
                {.cause = "compile",
                 .sentence = "Compiled code is cut into pieces, and Python works between them",
                 .next = "torch.compile(fullgraph=True) names the lines that cut it; take printing, .item() and NumPy "
                         "out of what is compiled",
                 .confidence = "medium"});
            found.finding.evidence.push_back(
                {.text = "Pieces", .value = static_cast<std::int64_t>(frames.size()), .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
