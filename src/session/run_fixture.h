// What the tests on real traces share: a run of one, a report of it, its figures. Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include "base/corpus_fixture.h"
#include "session/session.h"

namespace stepscope::corpus_fixture {

using Ns = std::int64_t;

// From the files themselves: a test must not see what an earlier run left in the cache.
inline Run opened(const std::vector<std::string>& paths) {
  session::OpenOptions options;
  options.use_cache = false;
  Result<Run> run = session::open(paths, options);
  REQUIRE_MESSAGE(run, paths.front());
  return *std::move(run);
}

inline Run opened(const fs::path& path) { return opened(std::vector{path.string()}); }

inline Report report_of(const std::vector<std::string>& paths, std::vector<std::string> names = {}) {
  const Run run = opened(paths);
  Result<Report> report = session::answer(run, names);
  REQUIRE(report);
  CHECK(report->failed.empty());
  return *std::move(report);
}

inline const Answer& answer_of(const Report& report, std::string_view name) {
  for (const Answer& answer : report.answers) {
    if (answer.name == name) return answer;
  }
  FAIL("no answer ", name);
  return report.answers.front();
}

inline Ns ns(const Report& report, std::string_view answer, std::string_view scalar) {
  const Scalar* found = answer_of(report, answer).scalar(scalar);
  REQUIRE_MESSAGE(found != nullptr, scalar);
  REQUIRE_MESSAGE(std::holds_alternative<Ns>(found->value), scalar);
  return std::get<Ns>(found->value);
}

inline double real(const Report& report, std::string_view answer, std::string_view scalar) {
  const Scalar* found = answer_of(report, answer).scalar(scalar);
  REQUIRE_MESSAGE(found != nullptr, scalar);
  REQUIRE_MESSAGE(std::holds_alternative<double>(found->value), scalar);
  return std::get<double>(found->value);
}

inline std::size_t column(const Table& table, std::string_view name) {
  for (std::size_t i = 0; i < table.columns.size(); i++) {
    if (table.columns[i].name == name) return i;
  }
  FAIL("no column ", name);
  return 0;
}

// The cell of the first row whose first cell starts with `row`.
inline Value cell(const Table& table, std::string_view row, std::string_view name) {
  for (const auto& cells : table.rows) {
    const auto* first = std::get_if<std::string>(&cells.front());
    if (first != nullptr && first->starts_with(row)) return cells[column(table, name)];
  }
  FAIL("no row ", row);
  return {};
}

}  // namespace stepscope::corpus_fixture
