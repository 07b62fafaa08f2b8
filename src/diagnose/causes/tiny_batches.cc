// Calls of a model with one sample each, right behind one another: what waits together could be answered together.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/model_calls.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {

namespace {

constexpr double kTogether = 8;  // that a server would wait for
constexpr double kLeastWork = 0.4, kMostOfCalls = 0.25;

// In a batch calling is there once for all, and so are the weights that a product reads; the rest of the work is that
// of each sample. Of a short operator nearly all may be its calling: half of that is at least.
void add_operator(std::uint32_t node, const Work& work, std::string_view name, std::int64_t usual_ns, Gathered& to) {
  constexpr std::int64_t kShortNs = 30'000;
  const auto cost = static_cast<double>(work.cost_ns),
             least_calling = static_cast<double>(std::min(work.cost_ns, usual_ns)),
             most_calling = static_cast<double>(std::min(work.cost_ns, std::max(usual_ns, kShortNs)));
  const double calling = (least_calling + most_calling) / 2;
  to.add_ns(node, work, name, static_cast<std::int64_t>(most_calling / kTogether + kLeastWork * (cost - most_calling)),
            static_cast<std::int64_t>(cost - (1 - kMostOfCalls) * calling));
}

void add_call(const Case& about, const ModelCall& call, Gathered& to) {
  for (const std::uint32_t node : call.nodes) {
    const Work work = about.work(node);
    if (work.device || work.operation == SliceId::none) {
      to.add(node, work, call.module, 1 / kTogether, kMostOfCalls);
    } else {
      add_operator(node, work, call.module, usual_call_ns(about, *call.trace), to);
    }
  }
}

// What is done between two calls that follow one another is done for a request as well: operators on its answer go
// along in a batch, and of the program's own code nobody knows.
class Between {
 public:
  explicit Between(const Case& about) : about_(about) {
    for_each_work(about, [&](std::uint32_t node, const Work& work) {
      if (!work.device && work.role == simulate::NodeRole::host) threads_[{work.trace, work.track}].push_back(node);
    });
    for (auto& [thread, nodes] : threads_) std::sort(nodes.begin(), nodes.end(), ByStart{about});
  }

  void add(const ModelCall& before, const ModelCall& call, Gathered& to) const {
    for_each(before, call, [&](std::uint32_t node, const Work& work) {
      if (work.operation == SliceId::none) {
        to.add(node, work, call.module, kMostOfCalls, 1);
      } else {
        add_operator(node, work, call.module, usual_call_ns(about_, *call.trace), to);
      }
    });
  }

  // Nothing that is known to run: it may be waiting for the next request.
  std::int64_t unknown_ns(const ModelCall& before, const ModelCall& call) const {
    std::int64_t ns = std::max<std::int64_t>(call.start_ns - before.end_ns, 0);
    for_each(before, call, [&](std::uint32_t, const Work& work) {
      if (work.operation != SliceId::none) ns -= work.cost_ns;
    });
    return ns;
  }

  bool goes_back(const ModelCall& before, const ModelCall& call) const {
    bool back = false;
    for_each(before, call, [&](std::uint32_t, const Work& work) {
      back = back || (work.operation != SliceId::none && is_backward(work.trace->name(work.operation)));
    });
    return back;
  }

 private:
  struct ByStart {
    const Case& about;
    std::int64_t start(std::uint32_t node) const { return about.work(node).start_ns; }
    bool operator()(std::uint32_t a, std::uint32_t b) const { return start(a) < start(b); }
    bool operator()(std::uint32_t node, std::int64_t time_ns) const { return start(node) < time_ns; }
  };

  template <class Visit>
  void for_each(const ModelCall& before, const ModelCall& call, const Visit& visit) const {
    const auto thread = threads_.find({call.trace, call.track});
    if (thread == threads_.end()) return;
    const std::vector<std::uint32_t>& nodes = thread->second;
    const auto by_start = ByStart{about_};
    auto at = std::lower_bound(nodes.begin(), nodes.end(), before.end_ns, by_start);
    const auto end = std::lower_bound(at, nodes.end(), call.start_ns, by_start);
    for (; at != end; ++at) visit(*at, about_.work(*at));
  }

  const Case& about_;
  std::map<std::pair<const Trace*, TrackId>, std::vector<std::uint32_t>> threads_;
};

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

bool is_of_one(const ModelCall& call) {
  return call.sizes.size() > 1 && call.sizes[0] == 1 && elements(call.sizes) > 1;  // one word follows from another
}

// Calls each of which `follows` the one before it, which a batch would make one.
template <class Follows>
void find_rows(const Case& about, const Between& between, const Follows& follows, const Words& words,
               std::vector<Diagnosis>& out) {
  constexpr std::size_t kFewestInARow = 4;  // a recording of steps has five
  const std::vector<ModelCall>& calls = model_calls(about);
  Gathered alone(about);
  std::size_t in_a_row = 0, most = 0;
  for (std::size_t i = 1; i < calls.size(); i++) {
    const ModelCall &before = calls[i - 1], &call = calls[i];
    const bool alike = are_alike(before, call) && before.sizes.size() == call.sizes.size();
    in_a_row = alike && is_of_one(call) && follows(i) ? in_a_row + 1 : 0;
    most = std::max(most, in_a_row);
    if (in_a_row == 0) continue;
    add_call(about, call, alone);
    between.add(before, call, alone);
  }
  if (most < kFewestInARow || !alone.worth_saying()) return;
  Diagnosis found = alone.diagnosis(words);
  put_model(about, *alone.names().first().example.trace, alone.names().first().name, found.finding.where);
  found.finding.evidence.push_back({.text = "Calls of one sample right behind one another",
                                    .value = static_cast<std::int64_t>(most),
                                    .unit = Unit::count});
  out.push_back(std::move(found));
}

void find_answers(const Case& about, const Between& between, std::vector<Diagnosis>& out) {
  constexpr double kRightBehind = 0.5;  // of a call: a longer gap without operators is a wait for requests
  const std::vector<ModelCall>& calls = model_calls(about);
  const auto right_behind = [&](std::size_t i) {
    return !calls[i].trains && !is_next_word(calls, i) &&
           static_cast<double>(between.unknown_ns(calls[i - 1], calls[i])) <
               kRightBehind * static_cast<double>(calls[i].end_ns - calls[i].start_ns);
  };
  find_rows(about, between, right_behind,
            {.cause = "serving",
             .sentence = "The model answers one request per call, while others follow at once",
             .next = "Answer requests that wait together in one batch: collect those of a few milliseconds, pad them, "
                     "and call the model once"},
            out);
}

// Samples that a step goes forward and back with one by one, before its optimizer takes the sum of their gradients.
void find_samples(const Case& about, const Between& between, std::vector<Diagnosis>& out) {
  const std::vector<ModelCall>& calls = model_calls(about);
  const auto in_one_step = [&](std::size_t i) {
    const ModelCall &before = calls[i - 1], &call = calls[i];
    return before.trains && call.trains && is_of_one(before) &&
           call.trace->step_at(before.start_ns) == call.trace->step_at(call.start_ns) &&
           between.goes_back(before, call);
  };
  find_rows(about, between, in_one_step,
            {.cause = "host",
             .sentence = "A step goes forward and back with one sample after the other",
             .next = "Give the model all samples of the step as one batch, padded where they differ, or as many as "
                     "memory has room for, and call backward() once for each batch"},
            out);
}

}  // namespace

Cause tiny_batches_cause() {
  return {"tiny_batches", "Samples one by one", [](const Case& about, std::vector<Diagnosis>& out) {
            if (model_calls(about).size() < 2) return;
            const Between between(about);
            find_answers(about, between, out);
            find_samples(about, between, out);
          }};
}

}  // namespace stepscope::diagnose::causes
