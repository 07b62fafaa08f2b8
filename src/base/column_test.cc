#include "base/column.h"

#include <doctest/doctest.h>

#include <vector>

using stepscope::Column;
using stepscope::NarrowColumn;

TEST_CASE("a column keeps its rows while it grows") {
  Column<int> column;
  for (int i = 0; i < 100'000; i++) column.push_back(i);
  REQUIRE(column.size() == 100'000);
  CHECK(column[99'999] == 99'999);
}

TEST_CASE("a view becomes an owned copy on first write") {
  auto owner = std::make_shared<std::vector<int>>(std::vector<int>{1, 2, 3});
  auto column = Column<int>::view(*owner, owner);
  column.push_back(4);
  CHECK(column.size() == 4);
  CHECK(column[2] == 3);
  CHECK(owner->size() == 3);
}

TEST_CASE("a narrow column gives back every int64, absent included") {
  const std::vector<std::int64_t> values{0, 1, 0xfffffffd, 0xfffffffe, 0xffffffff, -1, NarrowColumn::absent, INT64_MAX};
  NarrowColumn one_by_one, block;
  for (auto v : values) one_by_one.push_back(v);
  block.append(values);
  for (std::size_t i = 0; i < values.size(); i++) {
    CHECK(one_by_one[i] == values[i]);
    CHECK(block[i] == values[i]);
    CHECK(block.has(i) == (values[i] != NarrowColumn::absent));
  }
}
