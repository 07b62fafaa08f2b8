#include "model/serving_marks.h"

#include <doctest/doctest.h>

namespace stepscope {
namespace {

void check(std::string_view name, ServingKind kind, std::int64_t prefills, std::int64_t prefill_tokens,
           std::int64_t decodes, std::int64_t decode_tokens) {
  CAPTURE(name);
  const auto mark = serving_mark(name);
  REQUIRE(mark);
  CHECK(mark->kind == kind);
  CHECK(mark->prefill_requests == prefills);
  CHECK(mark->prefill_tokens == prefill_tokens);
  CHECK(mark->decode_requests == decodes);
  CHECK(mark->decode_tokens == decode_tokens);
}

TEST_CASE("serving marks: as vLLM, SGLang and ATOM write them") {
  check("execute_context_2(512)_generation_14(15)", ServingKind::mixed, 2, 512, 14, 15);
  check("execute_context_1(8192)_generation_0(0)", ServingKind::prefill, 1, 8192, 0, 0);
  check("execute_context_0(0)_generation_16(16)", ServingKind::decode, 0, 0, 16, 16);
  check("execute_context_0(0)_generation_0(0)", ServingKind::idle, 0, 0, 0, 0);
  check("execute_7_context_3(sq128sk256sqsq1sqsk1)_generation_2(sq1sk300sqsq1sqsk1)", ServingKind::mixed, 3, 128, 2, 1);
  check("execute_new_2_cached_14", ServingKind::mixed, 2, -1, 14, -1);
  check("execute_model", ServingKind::other, -1, -1, -1, -1);
  check("step[DECODE bs=16]", ServingKind::decode, -1, -1, 16, 16);
  check("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", ServingKind::prefill, 2, 12, -1, -1);
  check("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25]", ServingKind::mixed, 1, 5, 1, 1);
  check("step[VERIFY bs=4]", ServingKind::other, -1, -1, 4, -1);
  check("step[IDLE bs=0]", ServingKind::idle, -1, -1, -1, -1);
  check("prefill[bs=2 tok=16384]", ServingKind::prefill, 2, 16384, -1, -1);
  check("decode[bs=64 tok=64]", ServingKind::decode, -1, -1, 64, 64);
}

TEST_CASE("serving marks: other names and torn ones") {
  for (const std::string_view name : {"", "forward", "decode", "prefill[", "ProfilerStep#1", "steps[DECODE bs=1]"})
    CHECK_FALSE(serving_mark(name));
  check("execute_context_", ServingKind::other, -1, -1, -1, -1);
  check("execute_context_5(", ServingKind::prefill, 5, -1, -1, -1);
  check("execute_context_99999999999999999999(1)_generation_-3(", ServingKind::other, -1, -1, -1, -1);
  check("step[", ServingKind::other, -1, -1, -1, -1);
}

}  // namespace
}  // namespace stepscope
