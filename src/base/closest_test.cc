#include "base/closest.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

using stepscope::closest;

TEST_CASE("a slip of the keys finds the word that was meant") {
  constexpr std::array<std::string_view, 4> names{"kernels", "communication", "idle", "operators"};
  CHECK(closest("kernel", names) == "kernels");
  CHECK(closest("Kernles", names) == "kernels");
  CHECK(closest("idel", names) == "idle");
  CHECK(closest("comm", names) == "communication");
  CHECK(closest("ops", names).empty());
  CHECK(closest("", names).empty());
  CHECK(closest(std::string(100'000, 'k'), names).empty());
}
