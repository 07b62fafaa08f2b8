// What the tests of the answers share: a run from a hand-built trace, an answer by name, its cells. Not part of the
// program.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "analyze/analysis.h"
#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope::answer_fixture {

using Ns = std::int64_t;

inline Run run_of(TraceFixture&& fixture) {
  REQUIRE(derive::derive(fixture.trace, {}));
  Run run;
  run.traces.push_back(std::move(fixture.trace));
  return run;
}

inline Answer ask(const Run& run, std::string_view name, std::size_t max_rows = 0) {
  for (const analyze::Analysis& analysis : analyze::analyses()) {
    if (analysis.name != name) continue;
    Result<Answer> answer = analysis.run(run, {.max_rows = max_rows});
    REQUIRE(answer);
    for (const Table& table : answer->tables) {
      for (const auto& row : table.rows) REQUIRE(row.size() == table.columns.size());
    }
    return *std::move(answer);
  }
  FAIL("no analysis ", name);
  return {};
}

inline Ns ns(const Answer& answer, std::string_view scalar) {
  const Scalar* found = answer.scalar(scalar);
  REQUIRE_MESSAGE(found != nullptr, scalar);
  REQUIRE_MESSAGE(std::holds_alternative<Ns>(found->value), scalar);
  return std::get<Ns>(found->value);
}

inline double real(const Answer& answer, std::string_view scalar) {
  const Scalar* found = answer.scalar(scalar);
  REQUIRE_MESSAGE(found != nullptr, scalar);
  REQUIRE_MESSAGE(std::holds_alternative<double>(found->value), scalar);
  return std::get<double>(found->value);
}

inline bool unknown(const Answer& answer, std::string_view scalar) {
  const Scalar* found = answer.scalar(scalar);
  REQUIRE_MESSAGE(found != nullptr, scalar);
  CHECK_FALSE(found->meaning.empty());  // says why
  return std::holds_alternative<std::monostate>(found->value);
}

// The cell of `column` in the first row whose `key` column is `text`.
inline Value cell(const Answer& answer, std::string_view table, std::string_view key, std::string_view text,
                  std::string_view column) {
  const Table* found = answer.table(table);
  REQUIRE_MESSAGE(found != nullptr, table);
  const auto at = [&](std::string_view name) {
    for (std::size_t i = 0; i < found->columns.size(); i++) {
      if (found->columns[i].name == name) return i;
    }
    FAIL("no column ", name);
    return std::size_t{0};
  };
  for (const auto& row : found->rows) {
    if (row[at(key)] == Value(std::string(text))) return row[at(column)];
  }
  FAIL("no row ", text);
  return {};
}

}  // namespace stepscope::answer_fixture
