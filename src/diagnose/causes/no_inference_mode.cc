// A model that only answers, while autograd notes all that a backward pass would need.
#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "diagnose/model_calls.h"
#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {

namespace {

// torch answers a TransformerEncoderLayer by one operator, but not while autograd notes what its parameters do.
constexpr std::string_view kHasFastPath = "TransformerEncoderLayer";
constexpr double kLeastOfLayer = 0.35, kMostOfLayer = 0.55;  // of its operators
constexpr double kLeastOfItsPython = 0.2, kMostOfItsPython = 0.4;

class SlowPath {
 public:
  explicit SlowPath(const Case& about) : about_(about) {
    for (const Trace& trace : timelines(about.run)) {
      for (const ModuleCall& call : trace.modules) {
        if (call.type != StringId::none && trace.strings[call.type] == kHasFastPath) layers_[&trace].insert(call.slice);
      }
    }
  }

  // Whether it was one of these layers that called the operator, or was busy between two of them: by the ranges of the
  // modules, or by frames.
  bool has(const Work& work) {
    if (work.operation == SliceId::none) return is_in_layer(work) || is_slow(about_.code(work));
    const auto [known, is_new] = operators_.try_emplace({work.trace, work.operation}, false);
    if (is_new) known->second = is_in_layer(work) || is_slow(about_.code(*work.trace, work.operation));
    return known->second;
  }

 private:
  bool is_in_layer(const Work& work) const {
    const auto layers = layers_.find(work.trace);
    if (layers == layers_.end()) return false;
    for (SliceId at = work.slice; at != SliceId::none; at = work.trace->slices.parent[at]) {
      if (layers->second.contains(at)) return true;
    }
    return false;
  }

  static bool is_slow(const Code& code) {
    return std::any_of(code.stack.begin(), code.stack.end(),
                       [](const CodeFrame& frame) { return frame.module_class() == kHasFastPath; });
  }

  const Case& about_;
  std::map<const Trace*, std::unordered_set<SliceId>> layers_;
  std::map<std::pair<const Trace*, SliceId>, bool> operators_;
};

}  // namespace

Cause no_inference_mode_cause() {
  return {"no_inference_mode", "Autograd notes what nobody needs", [](const Case& about, std::vector<Diagnosis>& out) {
            // Noting an operator and letting go of it again; beside it memory that is kept until the answer is there.
            constexpr std::int64_t kLeastNoteNs = 1'000, kMostNoteNs = 6'000;
            constexpr double kMemoryPart = 0.1;
            const std::vector<ModelCall>& calls = model_calls(about);
            Gathered noted(about);
            SlowPath slow(about);
            bool any_slow = false;
            for (const ModelCall& call : calls) {
              if (call.trains || goes_back(*call.trace)) return;  // a job that trains
              if (!call.recorded) continue;
              for (const std::uint32_t node : call.nodes) {
                const Work work = about.work(node);
                if (!work.device && work.role == simulate::NodeRole::host && slow.has(work)) {
                  any_slow = true;
                  const bool is_code = work.operation == SliceId::none;
                  noted.add(node, work, call.module, is_code ? kLeastOfItsPython : kLeastOfLayer,
                            is_code ? kMostOfItsPython : kMostOfLayer);
                  continue;
                }
                if (work.device || work.operation == SliceId::none || work.slice != work.operation) continue;
                const auto kept = static_cast<std::int64_t>((1 - kMemoryPart) * static_cast<double>(work.cost_ns));
                noted.add_ns(node, work, call.module, std::max(work.cost_ns / 4, kept - kMostNoteNs),
                             std::max(work.cost_ns / 4, work.cost_ns - kLeastNoteNs));
              }
            }
            if (!noted.worth_saying()) return;
            Diagnosis found = noted.diagnosis(
                {.cause = "serving",
                 .sentence = "The model only answers, and autograd notes all that a backward pass would need",
                 .next = "Call it under torch.inference_mode()"});
            if (any_slow) {
              found.finding.evidence.push_back(
                  {.text = "torch has one operator for a TransformerEncoderLayer, which autograd keeps it from",
                   .value = Value()});
            }
            put_model(about, *noted.names().first().example.trace, noted.names().first().name, found.finding.where);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
