// SQL over a run: every table of the model and of the answers, read-only, within limits of time, memory and rows.
//
// SQLite reads the statement and our tables through virtual tables; a plain aggregation of one table is recognized and
// computed here instead, because SQLite's row-by-row calls would take seconds for millions of rows. Answers are
// computed only when a statement names one of their tables: the table `causes` of the answer `idle` is `idle_causes`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::query {

// What a statement can see. `run` must live as long as the result is read.
struct Source {
  const Run* run = nullptr;
  std::vector<std::string_view> answers;  // names
  std::function<Result<std::shared_ptr<const Answer>>(const std::string& name)> answer;
};

struct Limits {
  double seconds = 30;
  std::uint64_t rows = 0;                   // 0: all
  std::uint64_t memory_bytes = 2ull << 30;  // of SQLite's own work (sorting, joining); not of the run
  bool shortcut = true;                     // false: SQLite does everything (tests compare the two)
};

// Takes the result row by row. Returning false ends the query early, without an error.
struct RowSink {
  virtual ~RowSink() = default;
  virtual void columns(std::span<const std::string> names) = 0;
  virtual bool row(std::span<const Value> cells) = 0;
};

struct Outcome {
  std::uint64_t rows = 0;
  bool cut = false;       // there were more rows than Limits::rows
  bool shortcut = false;  // computed here, not by SQLite
};

// One SELECT (or EXPLAIN QUERY PLAN …), or one of .tables, .schema [TABLE], .recipes.
Result<Outcome> run_query(const Source& source, const std::string& sql, const Limits& limits, RowSink& sink);

// The rows as a table of values; for results that fit memory many times. SQL types values, a table types columns: a
// column of whole numbers and reals is real, any other mixture is text.
class TableSink : public RowSink {
 public:
  void columns(std::span<const std::string> names) override;
  bool row(std::span<const Value> cells) override;
  Table take();

 private:
  Table table_;
  std::vector<std::uint8_t> kinds_;  // of a column: one bit for each kind of value seen
};

// A statement that comes with stepscope.
struct Recipe {
  std::string_view name;
  std::string_view sql;       // with its comment
  std::string_view sentence;  // what it answers: the first line of the comment
};
std::span<const Recipe> recipes();
Result<Recipe> recipe_named(std::string_view name);

// What `.schema` and the documentation say of one table.
struct TableDescription {
  std::string name;
  std::string meaning;
  std::vector<TableColumn> columns;
};
// Of the tables of the model, in the order in which they are listed.
std::vector<TableDescription> describe_model();
// Of all answers of the source; those that cannot be made are left out.
std::vector<TableDescription> describe_answers(const Source& source);

}  // namespace stepscope::query
