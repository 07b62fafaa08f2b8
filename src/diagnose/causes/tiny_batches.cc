// Calls of a model with one sample each, right behind one another: what waits together could be answered together.
#include <algorithm>

#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/model_calls.h"

namespace stepscope::diagnose::causes {

namespace {

// In a batch calling and Python are there once for all, and so are the weights that a product reads; the rest of the
// work is that of each sample.
void add_call(const Case& about, const ModelCall& call, Gathered& to) {
  constexpr double kTogether = 8;  // that a server would wait for
  constexpr double kLeastWork = 0.4, kMostOfCalls = 0.25;
  const std::int64_t usual_ns = usual_call_ns(about, *call.trace);
  for (const std::uint32_t node : call.nodes) {
    const Work work = about.work(node);
    if (work.device || work.operation == SliceId::none) {
      to.add(node, work, call.module, 1 / kTogether, kMostOfCalls);
      continue;
    }
    const auto calling = static_cast<double>(std::min(work.cost_ns, usual_ns)),
               working = static_cast<double>(work.cost_ns) - calling;
    to.add_ns(node, work, call.module, static_cast<std::int64_t>(calling / kTogether + kLeastWork * working),
              static_cast<std::int64_t>(kMostOfCalls * calling + working));
  }
}

// Is it given one position more than the call before?
bool goes_on(const std::vector<ModelCall>& calls, std::size_t i) {
  if (i == 0 || i >= calls.size() || !are_alike(calls[i - 1], calls[i])) return false;
  if (calls[i].sizes.size() != calls[i - 1].sizes.size()) return false;
  std::int64_t more = 0, less = 0;
  for (std::size_t d = 0; d < calls[i].sizes.size(); d++) {
    const std::int64_t change = calls[i].sizes[d] - calls[i - 1].sizes[d];
    (change > 0 ? more : less) += change;
  }
  return more == 1 && less == 0;
}

// Requests have lengths of their own. Two in a row that are a position longer each are words that follow one another.
bool is_next_word(const std::vector<ModelCall>& calls, std::size_t i) {
  return goes_on(calls, i) && (goes_on(calls, i - 1) || goes_on(calls, i + 1));
}

}  // namespace

Cause tiny_batches_cause() {
  return {"tiny_batches", "Requests answered one by one", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr std::size_t kFewestInARow = 4;  // a recording of steps has five
            constexpr double kRightBehind = 0.5;      // of a call: a longer gap is a wait for requests
            const std::vector<ModelCall>& calls = model_calls(about);
            Gathered alone(about);
            std::size_t in_a_row = 0, most = 0;
            for (std::size_t i = 0; i < calls.size(); i++) {
              const ModelCall& call = calls[i];
              const bool one = !call.trains && call.sizes.size() > 1 && call.sizes[0] == 1 &&
                               elements(call.sizes) > 1;  // one word follows from the one before
              const bool behind = i > 0 && are_alike(calls[i - 1], call) &&
                                  calls[i - 1].sizes.size() == call.sizes.size() && !is_next_word(calls, i) &&
                                  static_cast<double>(call.start_ns - calls[i - 1].end_ns) <
                                      kRightBehind * static_cast<double>(call.end_ns - call.start_ns);
              in_a_row = one && behind ? in_a_row + 1 : 0;
              most = std::max(most, in_a_row);
              if (in_a_row == 0) continue;
              add_call(about, call, alone);
            }
            if (most < kFewestInARow || !alone.worth_saying()) return;
            Diagnosis found = alone.diagnosis(
                {.cause = "serving",
                 .sentence = "The model answers one request per call, while others follow at once",
                 .next = "Answer requests that wait together in one batch: collect those of a few milliseconds, pad "
                         "them, and call the model once"});
            put_model(about, *alone.names().first().example.trace, alone.names().first().name, found.finding.where);
            found.finding.evidence.push_back({.text = "Calls of one sample right behind one another",
                                              .value = static_cast<std::int64_t>(most),
                                              .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
