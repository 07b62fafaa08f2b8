// Batches of rows of many lengths, filled up with one word, or with frames of one number: the model works on them as on
// any other.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/source.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kTelling = 0.15;  // of the words, that fill up
// Of what fills up so much stays where batches are made of rows that are about as long.
constexpr double kStays = 0.5;

// Rows and words in each, of the look-up that most of the steps follow from; 0: not known.
struct Batch {
  std::int64_t rows = 0, length = 0, words = 0;
  bool within = false;  // of frames within the model, whose length is inferred
};

// What is said of the batches of a rank, and the sizes that tell tensors of them.
struct Filled {
  Source::Padded said;
  std::vector<Batch> batches;
};

bool is_recurrent(std::string_view name) {
  return name == "aten::lstm" || name == "aten::gru" || name == "aten::rnn_tanh" || name == "aten::rnn_relu";
}

bool is_table_of(const Operator& one) { return one.name == "aten::embedding" && one.inputs->shapes.size() > 1; }

Batch batch_of(const std::vector<Operator>& all, const Trace& trace) {
  Batch out;
  for (const Operator& one : all) {
    if (one.trace != &trace || !is_table_of(one)) continue;
    const Sizes& words = one.inputs->shapes[1].sizes;
    const bool more = words.size() == 2 && words[0] > 0 && words[1] > 0 && elements(words) > out.words;
    if (more) out = {words[0], words[1], elements(words)};
  }
  return out;
}

// Is any tensor that it is given one of all words of the batch?
bool is_of_words(const Operator& one, const Batch& batch) {
  return std::any_of(one.inputs->shapes.begin(), one.inputs->shapes.end(), [&](const Shape& shape) {
    const auto count = [&](std::int64_t size) { return std::count(shape.sizes.begin(), shape.sizes.end(), size); };
    if (batch.within) return shape.sizes.size() > 2 && shape.sizes.front() == batch.rows && count(batch.length) > 0;
    const bool both =
        batch.rows == batch.length ? count(batch.rows) > 1 : count(batch.rows) > 0 && count(batch.length) > 0;
    // Heads may be counted as rows: there are several times as many of these then.
    const bool whole = elements(shape.sizes) % batch.words == 0 && shape.sizes.size() > 2;
    return both || count(batch.words) > 0 || (whole && count(batch.length) > 0);
  });
}

// The lengths that frames have within the model: convolutions take a few off at the ends, or all but every second.
std::vector<Batch> lengths_of(const std::vector<Operator>& all, const Trace& trace, std::int64_t rows,
                              std::int64_t length) {
  constexpr std::int64_t kMostSteps = 8, kOfEnds = 4;
  std::set<std::int64_t> lengths, widths;
  for (const Operator& one : all) {
    if (one.trace != &trace) continue;
    const bool has_weight = is_product(one.name) || one.name.find("conv") != std::string_view::npos;
    for (const Shape& shape : one.inputs->shapes) {
      const bool is_weight = has_weight && std::find(shape.sizes.begin(), shape.sizes.end(), rows) == shape.sizes.end();
      if (is_weight) widths.insert(shape.sizes.begin(), shape.sizes.end());
      if (shape.sizes.size() < 3 || shape.sizes.front() != rows) continue;
      for (const std::int64_t size : shape.sizes) {
        for (std::int64_t step = 1; step <= kMostSteps && size > 0; step *= 2) {
          if (length / step > 2 * kOfEnds && std::abs(size - length / step) <= kOfEnds) lengths.insert(size);
        }
      }
    }
  }
  if (length > std::numeric_limits<std::int64_t>::max() / rows) return {};
  std::vector<Batch> out{{rows, length, rows * length}};
  for (const std::int64_t one : lengths) {  // a layer may be as wide as another one is long
    if (one != length && !widths.contains(one)) out.push_back({.rows = rows, .length = one, .within = true});
  }
  return out;
}

// Of the tables of a rank the one that is filled up least: others may be of features. Without words the longest frames,
// of which layers make shorter ones.
Filled filled_of(const Case& about, const std::vector<Operator>& all, const Trace& trace) {
  const std::vector<Source::Padded> words = about.places.source(trace).padded();
  const auto least =
      std::min_element(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.filled < b.filled; });
  if (const Batch batch = batch_of(all, trace); least != words.end() && batch.words > 0) return {*least, {batch}};
  const std::vector<Source::Padded> frames = about.places.source(trace).padded_frames();
  const auto longest =
      std::max_element(frames.begin(), frames.end(), [](const auto& a, const auto& b) { return a.length < b.length; });
  if (longest == frames.end()) return {};
  return {*longest, lengths_of(all, trace, longest->rows, longest->length)};
}

}  // namespace

Cause padded_batches_cause() {
  return {
      "padded_batches", "Batches that are filled up", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered work_of(about);
        Source::Padded most;
        for (const Trace& trace : timelines(about.run)) {
          const auto [said, batches] = filled_of(about, all, trace);
          if (said.filled < kTelling || batches.empty()) continue;
          if (said.filled > most.filled) most = said;
          const double low = 1 - said.filled, high = 1 - std::max(said.needless, kStays * said.filled);
          const std::int64_t call_ns = usual_call_ns(about, trace);
          for (const Operator& one : all) {
            if (one.trace != &trace || one.phase == Phase::optimizer) continue;
            if (std::none_of(batches.begin(), batches.end(), [&](const Batch& of) { return is_of_words(one, of); })) {
              continue;
            }
            // Of a recurrent layer whole turns go, calls and all.
            const std::int64_t stays_ns = is_recurrent(one.name) ? 0 : call_ns;
            work_of.add(pass.nodes(trace, one.slice), one.name, low, high, stays_ns);
            work_of.add(pass.backward_nodes(trace, one.slice), one.name, low, high, stays_ns);
          }
        }
        if (most.call == nullptr || !work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "model",
             .sentence = most.length == 0 ? "The model works on words that only fill up the rows of its batches"
                                          : "The model works on frames that only fill up the rows of its batches",
             .next = most.needless >= kStays * most.filled
                         ? "Fill up to the longest row of each batch, and no further: in the collate function, or "
                           "cut columns off that hold nothing else"
                         : "Make batches of rows that are about as long: sort the samples by length, or put several "
                           "short ones in a row",
             .doubt = "how much fills up was seen in one step"});
        found.finding.where.op.reset();
        put_call(*most.call, found.finding.where);
        found.finding.where.module = std::string(most.module);
        found.finding.evidence.push_back(
            {.text = most.length == 0 ? "Of the words" : "Of the frames", .value = most.filled, .unit = Unit::ratio});
        found.finding.evidence.push_back({.text = "For no row at all", .value = most.needless, .unit = Unit::ratio});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
