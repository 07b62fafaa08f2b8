// Text that is generated word by word, where all words before are gone through again for each new one.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnose/loops.h"
#include "diagnose/model_calls.h"
#include "diagnose/operators.h"
#include "model/answer_parts.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kFewestInARow = 4;
// What calling an operator costs, whatever it is given.
constexpr std::int64_t kTokenCallNs = 6'000;

// The same model, given one position more than in the call before.
bool grows_by_one(const ModelCall& before, const ModelCall& now) {
  if (!are_alike(before, now) || before.sizes.size() != now.sizes.size()) return false;
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

struct Grown {
  const ModelCall* call = nullptr;
  std::int64_t positions = 0, cost_ns = 0;
};

// What a call with one position would take. The calls are an experiment: each is one position longer than the one
// before, so the line through their costs says what calling the model takes at all. The shorter half says it better:
// attention grows faster than its length, which turns the line; and it is Theil and Sen's line, which the last call of
// an answer, with what else happens there, turns no more than others. nullopt: too few lengths.
std::optional<double> one_position_ns(const std::vector<Grown>& calls) {
  constexpr double kFarApart = 1.3;  // the longest over the shortest: else the line is noise
  std::map<std::int64_t, std::vector<std::int64_t>> by_length;
  for (const Grown& one : calls) by_length[one.positions].push_back(one.cost_ns);
  if (by_length.size() < 2 * kFewestInARow ||
      static_cast<double>(by_length.rbegin()->first) < kFarApart * static_cast<double>(by_length.begin()->first)) {
    return std::nullopt;
  }
  constexpr std::size_t kMostLengths = 256;  // each is compared with each
  const std::size_t half = std::min((by_length.size() + 1) / 2, kMostLengths);
  std::vector<std::pair<std::int64_t, std::int64_t>> shorter;
  for (const auto& [length, costs] : by_length) {
    if (shorter.size() == half) break;
    shorter.emplace_back(length, median(costs).value_or(0));
  }
  std::vector<std::int64_t> slopes, starts;
  for (std::size_t i = 0; i < shorter.size(); i++) {
    for (std::size_t j = 0; j < i; j++) {
      slopes.push_back((shorter[i].second - shorter[j].second) / (shorter[i].first - shorter[j].first));
    }
  }
  const std::int64_t slope = median(std::move(slopes)).value_or(0);
  if (slope <= 0) return std::nullopt;
  for (const auto& [length, cost] : shorter) starts.push_back(cost - slope * length);
  return static_cast<double>(std::max<std::int64_t>(0, median(std::move(starts)).value_or(0)) + slope);
}

// Calls of one model, one after the other, that are given one position more each time; in_a_row: at most.
struct Growing {
  std::vector<Grown> calls;
  std::size_t in_a_row = 0;
};

Growing growing(const Case& about, const std::vector<const ModelCall*>& calls) {
  Growing out;
  std::size_t in_a_row = 0;
  for (std::size_t i = 1; i < calls.size(); i++) {
    in_a_row = grows_by_one(*calls[i - 1], *calls[i]) ? in_a_row + 1 : 0;
    if (in_a_row == 0 || calls[i]->trains) continue;
    out.in_a_row = std::max(out.in_a_row, in_a_row);
    out.calls.push_back({calls[i], positions(*calls[i - 1], *calls[i])});
    for (const std::uint32_t node : calls[i]->nodes) out.calls.back().cost_ns += about.cost_ns(node);
  }
  return out;
}

// What a call takes at the least, whatever it is given: its operators are called, and products read their weights.
std::int64_t least_ns(const Case& about, const ModelCall& call) {
  constexpr std::int64_t kBytesPerNs = 20;  // of a host's memory; a few cores have no more
  const std::int64_t calling_ns = usual_call_ns(about, *call.trace);
  std::set<SliceId> operators;
  bool device = false;
  for (const std::uint32_t node : call.nodes) {
    const Work work = about.work(node);
    device = device || work.device;
    if (!work.device && work.operation != SliceId::none) operators.insert(work.operation);
  }
  std::int64_t total_ns = 0;
  for (const SliceId one : operators) {
    const std::string_view name = call.trace->name(one);
    if (is_view(name)) continue;
    const OperatorInputs& given = inputs(about).of(*call.trace, one);
    const bool half = given.has_type("c10::BFloat16") || given.has_type("c10::Half");
    std::int64_t bytes = 0;  // of what it is given beside its first tensor
    for (std::size_t i = 1; i < given.shapes.size() && is_product(name) && !device; i++) {
      if (!given.shapes[i].sizes.empty()) bytes += elements(given.shapes[i].sizes) * (half ? 2 : 4);
    }
    total_ns += std::max(calling_ns, bytes / kBytesPerNs);
  }
  return total_ns;
}

void add_with_cache(const Case& about, const std::vector<Grown>& calls, Gathered& again) {
  const std::optional<double> alone_ns = one_position_ns(calls);
  for (const Grown& one : calls) {
    const double part = 1.0 / static_cast<double>(one.positions);
    if (alone_ns && one.cost_ns > 0) {
      // Keeping and reading what is kept takes something too, and products of one row are slow for their size: twice
      // what is the least. So is the line: costs grow the slower the more positions there are, and begin below it.
      constexpr double kMostMore = 2;
      const auto share = [&](double ns) { return std::clamp(ns / static_cast<double>(one.cost_ns), part, 1.0); };
      const double least = share(static_cast<double>(least_ns(about, *one.call)));
      again.add(one.call->nodes, one.call->module, least, std::max(share(*alone_ns), std::min(1.0, kMostMore * least)));
    } else {
      again.add(one.call->nodes, one.call->module, part, std::min(1.0, 4 * part), kTokenCallNs);
    }
  }
}

// Where the calls of a model come from that the program does not call by its name: the function that goes from word to
// word. False: not known.
bool put_loop(const Case& about, const std::vector<const ModelCall*>& calls, Place& place) {
  const auto first_operator = [&](const ModelCall& call) {
    for (const std::uint32_t node : call.nodes) {
      if (const SliceId operation = about.work(node).operation; operation != SliceId::none) return operation;
    }
    return SliceId::none;
  };
  for (std::size_t i = 1; i < calls.size(); i++) {
    if (!grows_by_one(*calls[i - 1], *calls[i])) continue;
    const SliceId before = first_operator(*calls[i - 1]), now = first_operator(*calls[i]);
    if (before == SliceId::none || now == SliceId::none) continue;
    const Code code = about.places.around(*calls[i]->trace, before, now);
    if (code.own() == nullptr) continue;
    code.put_into(place);
    return true;
  }
  return false;
}

}  // namespace

Cause no_cache_cause() {
  return {"no_cache", "All words read again for each new one", [](const Case& about, std::vector<Diagnosis>& out) {
            // A program may call the layers of its model itself, each of which then grows on its own.
            std::map<std::tuple<const Trace*, std::string_view, TrackId>, std::vector<const ModelCall*>> models;
            for (const ModelCall& call : model_calls(about)) {
              models[{call.trace, call.module, call.track}].push_back(&call);
            }
            Gathered again(about);
            std::size_t count = 0;
            std::int64_t longest = 0;
            for (const auto& [model, calls] : models) {
              const Growing found = growing(about, calls);
              if (found.in_a_row < kFewestInARow) continue;
              add_with_cache(about, found.calls, again);
              count = std::max(count, found.in_a_row);
              for (const Grown& one : found.calls) longest = std::max(longest, one.positions);
            }
            if (!again.worth_saying()) return;
            Diagnosis found = again.diagnosis(
                {.cause = "serving",
                 .sentence = "Each new word is made from all words before it, which are gone through again each time",
                 .next = "Keep keys and values of the words before (use_cache=True, past_key_values, or a cache in the "
                         "attention), and give the model only the new word"});
            const Trace& trace = *again.names().first().example.trace;
            const std::string_view module = again.names().first().name;
            if (!put_model(about, trace, module, found.finding.where)) {
              for (const auto& [model, calls] : models) {
                const bool is_it = std::get<0>(model) == &trace && std::get<1>(model) == module;
                if (is_it && put_loop(about, calls, found.finding.where)) break;
              }
            }
            found.finding.evidence.push_back({.text = "Calls in a row, each one position longer",
                                              .value = static_cast<std::int64_t>(count),
                                              .unit = Unit::count});
            found.finding.evidence.push_back({.text = "Positions at most", .value = longest, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
