// Batches of rows of many lengths, filled up with one word: the model works on it as on any other.
#include <algorithm>
#include <cstdint>
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
};

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
    const bool both =
        batch.rows == batch.length ? count(batch.rows) > 1 : count(batch.rows) > 0 && count(batch.length) > 0;
    // Heads may be counted as rows: there are several times as many of these then.
    const bool whole = elements(shape.sizes) % batch.words == 0 && shape.sizes.size() > 2;
    return both || count(batch.words) > 0 || (whole && count(batch.length) > 0);
  });
}

}  // namespace

Cause padded_batches_cause() {
  return {
      "padded_batches", "Batches that are filled up", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered work_of(about);
        const CodeCall* call = nullptr;
        std::string table;
        double filled = 0, needless = 0;
        for (const Trace& trace : timelines(about.run)) {
          // Of the tables of one rank the one that is filled up least: others may be of features.
          const std::vector<Source::Padded> said = about.places.source(trace).padded();
          const auto least = std::min_element(said.begin(), said.end(),
                                              [](const auto& a, const auto& b) { return a.filled < b.filled; });
          const Batch batch = batch_of(all, trace);
          if (least == said.end() || least->filled < kTelling || batch.words == 0) continue;
          if (least->filled > filled) {
            filled = least->filled, needless = least->needless, call = least->call;
            table = std::string(least->module);
          }
          const double low = 1 - least->filled, high = 1 - std::max(least->needless, kStays * least->filled);
          const std::int64_t call_ns = usual_call_ns(about, trace);
          for (const Operator& one : all) {
            if (one.trace != &trace || one.phase == Phase::optimizer || !is_of_words(one, batch)) continue;
            work_of.add(pass.nodes(trace, one.slice), one.name, low, high, call_ns);
            work_of.add(pass.backward_nodes(trace, one.slice), one.name, low, high, call_ns);
          }
        }
        if (call == nullptr || !work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "model",
             .sentence = "The model works on words that only fill up the rows of its batches",
             .next = needless >= kStays * filled
                         ? "Fill up to the longest row of each batch, and no further: in the collate function, or "
                           "cut columns off that hold nothing else"
                         : "Make batches of rows that are about as long: sort the samples by length, or put several "
                           "short ones in a row",
             .doubt = "how much fills up was seen in one step"});
        found.finding.where.op.reset();
        put_call(*call, found.finding.where);
        found.finding.where.module = table;
        found.finding.evidence.push_back({.text = "Of the words", .value = filled, .unit = Unit::ratio});
        found.finding.evidence.push_back({.text = "For no row at all", .value = needless, .unit = Unit::ratio});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
