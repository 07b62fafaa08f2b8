// Answer: what every analysis returns, whatever its question. Text, JSON, HTML, data frames and web panels are all made
// from it, so an analysis never formats a number and a door never computes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/change.h"
#include "model/issue.h"

namespace stepscope {

// monostate: unknown (JSON null). Unknown is an answer, 0 is not a substitute for it.
using Value = std::variant<std::monostate, std::int64_t, double, std::string, bool>;

// How a number is to be read and shown. `ratio` is 0..1 and is shown in percent. `unix_ns` is a moment, ns since 1970,
// and is shown as a time of day; `ns` is how long something took, or a moment on the clock of a recording. A
// multiply-add is two `flop`.
enum class Unit : std::uint8_t { none, ns, bytes, count, ratio, gb_per_s, unix_ns, flop, flop_per_s };
std::string_view to_string(Unit unit);  // "", "ns", "bytes", "count", "ratio", "GB/s", "Unix ns", "FLOP", "FLOP/s"

// 2001. What is larger is a moment in Unix time: no recording is 30 years long, and no clock that began with a machine
// or a program has come so far.
inline constexpr std::int64_t kUnixFromNs = 1'000'000'000'000'000'000;

enum class ValueType : std::uint8_t { integer, real, text, boolean };
std::string_view to_string(ValueType type);

struct Scalar {
  std::string name;
  Value value;
  Unit unit = Unit::none;
  std::string meaning;     // one sentence; for an unknown value: why it is unknown
  std::string label = {};  // what readers see in place of the name; empty: the name in words
};

struct TableColumn {
  std::string name;
  ValueType type = ValueType::text;
  Unit unit = Unit::none;
  std::string meaning;     // one sentence
  std::string label = {};  // what readers see in place of the name; empty: the name in words
};

struct Table {
  std::string name;
  std::vector<TableColumn> columns;
  std::vector<std::vector<Value>> rows;  // each as long as columns
  bool bulky = false;                    // left out of the text of a terminal: whole stacks
};

struct Series {
  std::string name;
  Unit unit = Unit::none;
  std::vector<std::int64_t> t_ns;
  std::vector<double> v;                 // NaN: unknown
  std::vector<std::int64_t> event = {};  // number of the event at each point, where points are events; else empty
  // Of a series that is drawn in a chart with others of its answer; an empty metric: it stands by itself.
  std::string metric = {};               // the chart: "received"; series of several targets share it
  std::string target = {};               // the line in it: "eth0"
  std::string suffix = {};               // what stands behind its numbers: "/s", " cores"
  std::vector<std::int64_t> ranks = {};  // that it tells about; empty: it is of none
};

// A stretch of time with a name: a step, a phase.
struct Band {
  std::int64_t start_ns = 0, end_ns = 0;
  std::string label;
  double share = 1;  // of the stretch; below 1 where several bands have the same one
};

// What a rank did meanwhile, on the clock of the series of its answer, to be drawn behind them.
struct Bands {
  std::string name;  // "steps", "phases"
  std::int64_t rank = 0;
  std::vector<Band> bands;  // by start
};

struct Place {  // every part optional
  std::optional<std::int64_t> rank;
  std::optional<std::string> phase, module, op, function, file;
  std::optional<std::int64_t> line, t_ns;
};

struct Evidence {
  std::string text;
  Value value;
  Unit unit = Unit::none;
  std::optional<std::string> query;  // a command or SQL that shows it
};

struct Gain {
  double speedup_low = 1, speedup_high = 1;
  std::int64_t step_ns = 0;  // now; 0: not said
  std::string binds;         // the lane that bounds the step afterwards
  std::string how;           // what was assumed: "if no step waited for the data loader"
};

struct Finding {
  std::string id;  // stable snake_case
  std::string cause;
  std::string sentence;
  Place where;
  std::vector<Evidence> evidence;
  std::optional<Gain> gain;
  std::string gain_reason;                // why there is no gain, when there is none
  std::optional<std::string> confidence;  // "high", "medium", "low"
  std::string confidence_reason = {};     // why so sure, or what it rests on; empty: not said
  std::optional<std::string> next;        // the next thing to do
  std::vector<Change> changes = {};       // what fixing it would alter; session has them priced
};

struct Answer {
  std::string name;     // "overview", "steps" …
  std::string summary;  // the question, one line
  std::vector<Scalar> scalars;
  std::vector<Table> tables;
  std::vector<Series> series;
  std::vector<Bands> bands;
  std::vector<Finding> findings;
  std::vector<std::string> notes;  // sentences: what was assumed, what is missing and how to record it

  const Scalar* scalar(std::string_view name) const;
  // The whole number that it has; nullopt: there is none of that name, or it is unknown.
  std::optional<std::int64_t> whole(std::string_view scalar) const;
  const Table* table(std::string_view name) const;
};

// With the name and the question under which an analysis is listed: it does not say them itself. Errors pass through.
Result<Answer> titled(Result<Answer> answer, std::string_view name, std::string_view summary);

struct Input {
  std::string path, format, writer;
  std::int64_t rank = 0, world_size = 0;
  std::string rank_source;
  bool compressed = false, cached = false;
  std::uint64_t file_bytes = 0, text_bytes = 0, events = 0, slices = 0;
};

// Everything a door needs to show.
struct Report {
  std::string path;
  std::vector<Input> inputs;
  std::vector<std::string> hosts;  // that the traces name; an anonymous report leaves them out
  std::vector<Issue> issues;
  std::vector<Answer> answers;
  // Answers that could not be made, with the reason: (name, sentence).
  std::vector<std::pair<std::string, std::string>> failed;
  // All findings: those whose fix is worth most first, then those without a price, what is surer first.
  struct FindingAt {
    std::uint32_t answer = 0, finding = 0;  // indices
  };
  std::vector<FindingAt> by_worth = {};

  // nullptr: it has none of that name.
  const Answer* answer(std::string_view name) const;
  const Finding& finding(FindingAt at) const { return answers[at.answer].findings[at.finding]; }
};

}  // namespace stepscope
