// What the tests on real traces share: where these are, a report of one, its figures. Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "session/session.h"

namespace stepscope::corpus_fixture {

namespace fs = std::filesystem;
using Ns = std::int64_t;

inline fs::path corpus() {
  if (const char* set = std::getenv("STEPSCOPE_CORPUS")) return set;
  return fs::path(__FILE__).parent_path() / "../../../shared/data";
}

inline bool has_corpus() {
  if (fs::is_directory(corpus() / "hta")) return true;
  MESSAGE("skipped: no real traces at " << corpus().string() << " (set STEPSCOPE_CORPUS)");
  return false;
}

inline Report report_of(std::vector<std::string> paths, std::vector<std::string> names = {}) {
  session::OpenOptions options;
  options.use_cache = false;
  Result<Run> run = session::open(paths, options);
  REQUIRE_MESSAGE(run, paths.front());
  Result<Report> report = session::answer(*run, names);
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

}  // namespace stepscope::corpus_fixture
