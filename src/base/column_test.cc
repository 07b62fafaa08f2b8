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

TEST_CASE("columns without any value take no memory, and the first value brings all rows") {
  NarrowColumn column;
  for (int i = 0; i < 1000; i++) column.push_back(NarrowColumn::absent);
  CHECK(column.bytes() == 0);
  CHECK(column[999] == NarrowColumn::absent);
  column.push_back(7);
  CHECK(column[999] == NarrowColumn::absent);
  CHECK(column[1000] == 7);
}

TEST_CASE("a narrow column can be overwritten in place") {
  NarrowColumn column;
  for (std::int64_t i = 0; i < 10; i++) column.push_back(i);
  column.set(5, std::int64_t{1} << 40);
  column.set(3, -1);
  column.set(4, NarrowColumn::absent);
  CHECK(column[5] == std::int64_t{1} << 40);
  CHECK(column[3] == -1);
  CHECK_FALSE(column.has(4));
  column.set(5, 2);
  CHECK(column[5] == 2);
}

TEST_CASE("new rows of a resized column hold the fill") {
  Column<int> column;
  column.push_back(1);
  column.resize(100'000, 7);
  CHECK(column[0] == 1);
  CHECK(column[1] == 7);
  CHECK(column[99'999] == 7);
}
