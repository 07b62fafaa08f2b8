// A model that only answers, while autograd notes all that a backward pass would need.
#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "diagnose/let_go.h"
#include "diagnose/model_calls.h"
#include "diagnose/noted.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {

namespace {

// torch answers a TransformerEncoderLayer by one operator, but not while autograd notes what its parameters do. Its
// products and its attention are the same then; of all else it leaves 0.17 to 0.39 from a width of 64 to one of 512
// (torch 2.13.0, one thread).
constexpr std::string_view kHasFastPath = "TransformerEncoderLayer";
constexpr double kLeastOfProduct = 0.95;
constexpr double kLeastOfLayer = 0.2, kMostOfLayer = 0.4;

bool stays_whole(const Work& work) {
  const std::string_view name = work.name();
  return work.operation != SliceId::none && (is_product(name) || name.find("scaled_dot_product") != name.npos);
}

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

// What an operator costs less for which no node of the graph is made, and nothing is kept: measured on a small model,
// 0.5 us a node.
constexpr std::int64_t kLeastNoteNs = 400, kMostNoteNs = 1'200;
constexpr double kMemoryPart = 0.1;  // of its time, at most: memory that is kept is not used again meanwhile

void add_noting(const Case& about, const ModelCall& call, const std::vector<std::uint32_t>& nodes, Gathered& to) {
  std::int64_t total_ns = 0;
  for (const std::uint32_t node : nodes) total_ns += about.cost_ns(node);
  if (total_ns <= 0) return;
  const auto left = [&](double kept, std::int64_t note_ns) {
    return std::max(0.25, kept - static_cast<double>(note_ns) / static_cast<double>(total_ns));
  };
  to.add(nodes, call.module, left(1 - kMemoryPart, kMostNoteNs), left(1, kLeastNoteNs));
}

// Where the answer is there, the graph is let go, node by node, with the tensors that it kept.
// `threads`: those that call a model which notes something, with its name.
void add_letting_go(const Case& about, const std::map<std::pair<const Trace*, TrackId>, std::string_view>& threads,
                    Gathered& to) {
  constexpr std::int64_t kLongNs = 100'000;  // less is the program's own code, to which a few tensors add little
  constexpr double kLeastNs = 300, kMostNs = 1'500;  // of a tensor and its node
  constexpr double kTelling = 0.1;                   // of the stretch, at most: else it is about something else
  std::map<std::pair<const Trace*, TrackId>, std::vector<LetGo>> let_go_of;
  for (const auto& [thread, model] : threads) let_go_of[thread] = let_go(*thread.first, thread.second, 1);
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    const auto thread = threads.find({work.trace, work.track});
    if (!work.between_operators() || work.cost_ns < kLongNs || thread == threads.end()) return;
    const std::vector<LetGo>& all = let_go_of.at(thread->first);
    const auto later = [](const LetGo& one, std::int64_t time_ns) { return one.time_ns < time_ns; };
    const auto from = std::lower_bound(all.begin(), all.end(), work.start_ns, later);
    const auto to_end = std::lower_bound(from, all.end(), work.start_ns + work.cost_ns, later);
    const auto tensors = static_cast<double>(to_end - from);
    const auto gone = [&](double each_ns) {
      return std::min(work.cost_ns, static_cast<std::int64_t>(tensors * each_ns));
    };
    if (static_cast<double>(gone(kMostNs)) > kTelling * static_cast<double>(work.cost_ns)) {
      to.add_ns(node, work, thread->second, work.cost_ns - gone(kMostNs), work.cost_ns - gone(kLeastNs));
    }
  });
}

}  // namespace

Cause no_inference_mode_cause() {
  return {
      "no_inference_mode", "Autograd notes what nobody needs", [](const Case& about, std::vector<Diagnosis>& out) {
        const Noted& made = noted(about);
        Gathered needless(about);
        SlowPath slow(about);
        bool any_slow = false;
        std::map<std::pair<const Trace*, TrackId>, std::string_view> threads;
        for (const ModelCall& call : model_calls(about)) {
          if (call.trains || goes_back(*call.trace)) return;  // a job that trains
          if (!call.recorded) continue;
          std::map<SliceId, std::vector<std::uint32_t>> makers;
          for (const std::uint32_t node : call.nodes) {
            const Work work = about.work(node);
            if (work.device || work.role != simulate::NodeRole::host) continue;
            const bool is_code = work.operation == SliceId::none;
            if (slow.has(work)) {
              any_slow = true;
              const bool whole = stays_whole(work);
              needless.add(node, work, call.module, whole ? kLeastOfProduct : kLeastOfLayer, whole ? 1 : kMostOfLayer);
            } else if (!is_code && made.has(*work.trace, work.slice)) {
              makers[work.slice].push_back(node);
            }
          }
          for (const auto& [maker, nodes] : makers) add_noting(about, call, nodes, needless);
          if (!makers.empty()) threads.try_emplace({call.trace, call.track}, call.module);
        }
        add_letting_go(about, threads, needless);
        if (!needless.worth_saying()) return;
        Diagnosis found = needless.diagnosis(
            {.cause = "serving",
             .sentence = "The model only answers, and autograd notes all that a backward pass would need",
             .next = "Call it under torch.inference_mode()"});
        if (any_slow) {
          found.finding.evidence.push_back(
              {.text = "torch has one operator for a TransformerEncoderLayer, which autograd keeps it from",
               .value = Value()});
        }
        put_model(about, *needless.names().first().example.trace, needless.names().first().name, found.finding.where);
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
