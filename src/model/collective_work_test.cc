// Bytes and bandwidth of every collective, by the convention of NCCL's tests: written out here call by call.
#include "model/collective_work.h"

#include <doctest/doctest.h>

#include "model/trace_fixture.h"

namespace stepscope {
namespace {

struct Call {
  const char* recorded;
  std::int64_t in_elements, out_elements;  // of one rank, as torch records them
  CollectiveKind kind;
  std::int64_t full_elements;  // of the buffer that the convention counts
  double factor;               // bus over algorithm bandwidth
};

constexpr std::int64_t kRanks = 8, kPart = 1'000, kAll = kRanks * kPart;

constexpr Call kCalls[] = {
    {"allreduce", kAll, kAll, CollectiveKind::all_reduce, kAll, 2.0 * 7 / 8},
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", kAll, kAll, CollectiveKind::all_reduce, kAll, 2.0 * 7 / 8},
    {"allreduce_coalesced", kAll, kAll, CollectiveKind::all_reduce, kAll, 2.0 * 7 / 8},
    {"_allgather_base", kPart, kAll, CollectiveKind::all_gather, kAll, 7.0 / 8},
    {"allgather", kPart, kAll, CollectiveKind::all_gather, kAll, 7.0 / 8},
    {"_reduce_scatter_base", kAll, kPart, CollectiveKind::reduce_scatter, kAll, 7.0 / 8},
    {"all_to_all", kAll, kAll, CollectiveKind::all_to_all, kAll, 7.0 / 8},
    {"all_to_allv", kAll, 3 * kPart, CollectiveKind::all_to_all, kAll, 7.0 / 8},  // what this rank sends
    {"broadcast", kAll, kAll, CollectiveKind::broadcast, kAll, 1},
    {"_broadcast_oop", kAll, kAll, CollectiveKind::broadcast, kAll, 1},
    {"reduce", kAll, kAll, CollectiveKind::reduce, kAll, 1},
    {"send", kPart, kPart, CollectiveKind::send, kPart, 1},
    {"recv", kPart, kPart, CollectiveKind::receive, kPart, 1},
    {"gather", kPart, kAll, CollectiveKind::gather, kAll, 7.0 / 8},  // on the root
    {"gather", kPart, 0, CollectiveKind::gather, kAll, 7.0 / 8},     // on the others
    {"scatter", kAll, kPart, CollectiveKind::scatter, kAll, 7.0 / 8},
    {"scatter", 0, kPart, CollectiveKind::scatter, kAll, 7.0 / 8},
};

struct Type {
  const char* dtype;
  std::int64_t bytes;
};

constexpr Type kTypes[] = {{"Float", 4},
                           {"Double", 8},
                           {"Half", 2},
                           {"BFloat16", 2},
                           {"Long", 8},
                           {"Int", 4},
                           {"Short", 2},
                           {"Byte", 1},
                           {"Char", 1},
                           {"Bool", 1},
                           {"Float8_e4m3fn", 1},
                           {"Float8_e5m2", 1},
                           {"Float8_e4m3fnuz", 1},
                           {"Float8_e5m2fnuz", 1},
                           {"Float8_e8m0fnu", 1},
                           {"ComplexHalf", 4},
                           {"ComplexFloat", 8},
                           {"ComplexDouble", 16},
                           {"UInt16", 2},
                           {"UInt32", 4},
                           {"UInt64", 8}};

TEST_CASE("collectives: bytes of every kind in every type") {
  for (const Call& call : kCalls) {
    for (const Type& type : kTypes) {
      CAPTURE(std::string(call.recorded));
      CAPTURE(std::string(type.dtype));
      TraceFixture f;
      const SliceId kernel = f.kernel(f.stream("7"), "nccl", 0, 10);
      f.collective(kernel, call.recorded, call.in_elements, kRanks, type.dtype);
      f.trace.collectives.out_elements.set(0, call.out_elements);
      CHECK(collective_bytes(f.trace, 0) == call.full_elements * type.bytes);
    }
  }
}

TEST_CASE("collectives: kinds and bus factors") {
  for (const Call& call : kCalls) {
    CAPTURE(std::string(call.recorded));
    CHECK(collective_kind(call.recorded) == call.kind);
    REQUIRE(bus_factor(call.kind, kRanks));
    CHECK(*bus_factor(call.kind, kRanks) == doctest::Approx(call.factor));
  }
  CHECK_FALSE(bus_factor(CollectiveKind::barrier, kRanks));
  CHECK_FALSE(bus_factor(CollectiveKind::all_reduce, 0));
}

TEST_CASE("collectives: what is not known stays unknown") {
  TraceFixture f;
  const SliceId kernel = f.kernel(f.stream("7"), "nccl", 0, 10);
  f.collective(kernel, "allreduce", 100, kRanks, "NoSuchType");
  CHECK_FALSE(collective_bytes(f.trace, 0));
  f.collective(kernel, "allreduce", kAbsent, kRanks);
  f.trace.collectives.out_elements.set(1, kAbsent);
  CHECK_FALSE(collective_bytes(f.trace, 1));
  f.collective(kernel, "allreduce", INT64_MAX, kRanks);
  CHECK_FALSE(collective_bytes(f.trace, 2));
}

}  // namespace
}  // namespace stepscope
