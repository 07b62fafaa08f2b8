#include "model/buckets.h"

#include <doctest/doctest.h>

#include <numeric>

namespace stepscope {
namespace {

TEST_CASE("buckets: cover the window without holes, in equal pieces") {
  const auto buckets = buckets_of({100, 1'100'001});
  REQUIRE(buckets.size() <= kBuckets);
  CHECK(buckets.front().start == 100);
  CHECK(buckets.back().end == 1'100'001);
  for (std::size_t i = 1; i < buckets.size(); i++) REQUIRE(buckets[i].start == buckets[i - 1].end);
  CHECK(buckets_of({5, 5}).empty());
  CHECK(buckets_of({0, 3}).size() == 3);
}

TEST_CASE("buckets: what is spread adds up") {
  const auto buckets = buckets_of({0, 1'000'000});
  std::vector<double> sums(buckets.size());
  spread(sums, buckets, {12'345, 777'777}, 2);
  CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) == 2.0 * (777'777 - 12'345));
}

}  // namespace
}  // namespace stepscope
