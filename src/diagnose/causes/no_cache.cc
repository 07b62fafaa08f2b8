// Text that is generated word by word, where all words before are gone through again for each new one.
#include "diagnose/model_calls.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kFewestInARow = 4;
// What calling an operator costs, whatever it is given.
constexpr std::int64_t kTokenCallNs = 6'000;

// The same model, given one position more than in the call before.
bool grows_by_one(const ModelCall& before, const ModelCall& now) {
  if (before.module != now.module || before.trace != now.trace || before.sizes.size() != now.sizes.size()) return false;
  std::size_t longer = 0;
  for (std::size_t i = 0; i < now.sizes.size(); i++) {
    if (now.sizes[i] == before.sizes[i]) continue;
    if (i == 0 || before.sizes[i] < 1 || now.sizes[i] < 2 || now.sizes[i] - 1 != before.sizes[i]) return false;
    longer++;
  }
  return longer == 1;
}

std::int64_t positions(const ModelCall& before, const ModelCall& now) {
  for (std::size_t i = 0; i < now.sizes.size(); i++) {
    if (now.sizes[i] != before.sizes[i]) return now.sizes[i];
  }
  return 1;
}

}  // namespace

Cause no_cache_cause() {
  return {"no_cache", "All words read again for each new one", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<ModelCall>& calls = model_calls(about);
            Gathered again(about);
            std::size_t in_a_row = 0, count = 0;
            std::int64_t longest = 0;
            for (std::size_t i = 1; i < calls.size(); i++) {
              in_a_row = grows_by_one(calls[i - 1], calls[i]) ? in_a_row + 1 : 0;
              if (in_a_row == 0 || calls[i].trains) continue;
              count = std::max(count, in_a_row);
              const std::int64_t length = positions(calls[i - 1], calls[i]);
              longest = std::max(longest, length);
              const double one = 1.0 / static_cast<double>(length);
              again.add(calls[i].nodes, calls[i].module, one, std::min(1.0, 4 * one), kTokenCallNs);
            }
            if (count < kFewestInARow || !again.worth_saying()) return;
            Diagnosis found = again.diagnosis(
                {.cause = "serving",
                 .sentence = "Each new word is made from all words before it, which are gone through again each time",
                 .next = "Keep keys and values of the words before (use_cache=True, past_key_values, or a cache in the "
                         "attention), and give the model only the new word"});
            found.finding.where.module = again.names().first().name;
            found.finding.evidence.push_back({.text = "Calls in a row, each one position longer",
                                              .value = static_cast<std::int64_t>(count),
                                              .unit = Unit::count});
            found.finding.evidence.push_back({.text = "Positions at most", .value = longest, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
