#include "report/text_table.h"

#include <doctest/doctest.h>

using namespace stepscope;
using namespace stepscope::report;

namespace {

std::string drawn(const Table& table, unsigned width, const TableView& view = {}) {
  Page page({.width = width});
  write_table(page, table, view);
  return page.take();
}

const Table kKernels{
    "kernels",
    {{"rank", ValueType::integer, Unit::none, ""},
     {"name", ValueType::text, Unit::none, ""},
     {"total_ns", ValueType::integer, Unit::ns, ""},
     {"share", ValueType::real, Unit::ratio, ""},
     {"op", ValueType::text, Unit::none, ""},
     {"why", ValueType::text, Unit::none, ""}},
    {{std::int64_t{3}, std::string("gemm"), std::int64_t{1'500'000}, 0.75, Value(), std::string("it multiplies")},
     {std::int64_t{3}, std::string("add"), std::int64_t{500'000}, 0.25, Value(), std::string("it adds")}}};

}  // namespace

TEST_CASE("one unit a column, what all rows share and what none knows is said once") {
  CHECK(drawn(kKernels, 80) ==
        "  name  total ms  share %  why\n"
        "  gemm     1.500     75.0  it multiplies\n"
        "  add      0.500     25.0  it adds\n"
        "  all rows: rank 3; unknown in all rows: op\n");
}

TEST_CASE("columns are chosen by name, rows are limited and the rest is counted") {
  CHECK(drawn(kKernels, 80, {.max_rows = 1, .columns = {"share", "name", "no such column"}}) ==
        "  share %  name\n"
        "     75.0  gemm\n"
        "  + 1 more row\n");
}

TEST_CASE("a table without rows or columns says so or is nothing") {
  CHECK(drawn({"empty", {{"name"}}, {}}, 80) == "  no rows\n");
  CHECK(drawn({"unknown", {{"sum"}}, {{Value()}}}, 80) == "  1 row\n  unknown in all rows: sum\n");
  CHECK(drawn({"ragged", {{"a"}, {"b"}}, {std::vector<Value>(1, Value(std::string("x")))}}, 80) ==
        "  a\n  x\n  unknown in all rows: b\n");
}

TEST_CASE("sentences go before numbers when there is no room") {
  Table wide{"wide", {{"name"}, {"why"}}, {}};
  wide.rows.emplace_back();
  wide.rows[0].emplace_back(std::string(40, 'n'));
  wide.rows[0].emplace_back(std::string("because it is so and not otherwise"));
  for (int i = 0; i < 9; i++) {
    wide.columns.push_back({"measure_" + std::to_string(i) + "_ns", ValueType::integer, Unit::ns, ""});
    wide.rows[0].emplace_back(std::int64_t{123'456'789});
  }
  const std::string text = drawn(wide, 80);
  CHECK(text.find("no room for: ") != text.npos);
  CHECK(text.find("because") == text.npos);
  CHECK(text.find("123.457") != text.npos);
}
