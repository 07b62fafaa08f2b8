#include "report/arrange.h"

#include <doctest/doctest.h>

namespace stepscope::report {
namespace {

Report operators() {
  const std::vector<TableColumn> columns{{"name"},
                                         {"host_self_ns", ValueType::integer, Unit::ns},
                                         {"device_self_ns", ValueType::integer, Unit::ns},
                                         {"self_allocated_bytes", ValueType::integer, Unit::bytes}};
  const auto whole = [](std::int64_t n) { return Value(n); };
  Answer answer{.name = "operators"};
  for (const char* name : {"by_name", "by_shape"}) {
    answer.tables.push_back({name,
                             columns,
                             {{std::string("b"), whole(5), Value(), whole(1)},
                              {std::string("c"), whole(9), whole(2), whole(3)},
                              {std::string("a"), whole(7), whole(8), Value()}}});
  }
  answer.tables.push_back({"other", {{"x"}}, {}});
  Report report;
  report.answers.push_back(std::move(answer));
  return report;
}

std::string names(const Report& report, std::size_t table = 0) {
  std::string text;
  for (const auto& row : report.answers[0].tables[table].rows) text += std::get<std::string>(row[0]);
  return text;
}

std::string sorted_by(std::string sort) {
  Report report = operators();
  REQUIRE(arrange(report, {.sort = std::move(sort)}));
  return names(report);
}

}  // namespace

TEST_CASE("arrange: torch's names are ours, large first, unknown last, texts from a to z") {
  CHECK_EQ(sorted_by("self_cpu_time_total"), "cab");
  CHECK_EQ(sorted_by("host_self_ns"), "cab");
  CHECK_EQ(sorted_by("self_cuda_time_total"), "acb");
  CHECK_EQ(sorted_by("self_device_time_total"), "acb");
  CHECK_EQ(sorted_by("name"), "abc");
  Report report = operators();
  REQUIRE(arrange(report, {.sort = "self_cuda_memory_usage"}));
  CHECK_EQ(names(report), "cba");
  CHECK_NE(report.answers[0].notes.at(0).find("host and devices together"), std::string::npos);
}

TEST_CASE("arrange: one grouping, and rows cut with a note") {
  Report report = operators();
  REQUIRE(arrange(report, {.limit = 2, .group = "group_by_input_shape"}));
  REQUIRE_EQ(report.answers[0].tables.size(), 2);
  CHECK_EQ(report.answers[0].tables[0].name, "by_shape");
  CHECK_EQ(report.answers[0].tables[0].rows.size(), 2);
  CHECK_EQ(report.answers[0].notes.at(0), "Table by_shape shows 2 of 3 rows (--limit).");
}

TEST_CASE("arrange: unknown names are told with the nearest") {
  Report report = operators();
  CHECK_NE(arrange(report, {.sort = "self_cuda_time_totl"}).error().message.find("'self_cuda_time_total'"),
           std::string::npos);
  CHECK_NE(arrange(report, {.group = "nam"}).error().message.find("did you mean 'name'?"), std::string::npos);
  const auto no_stacks = arrange(report, {.group = "stack"});
  REQUIRE_FALSE(no_stacks);
  CHECK_NE(no_stacks.error().hint.find("with_stack=True"), std::string::npos);
}

}  // namespace stepscope::report
