#include "model/normal_name.h"

#include <doctest/doctest.h>

using stepscope::normal_name;

TEST_CASE("normal names: numbers of calls, steps and addresses vanish, all else stays") {
  CHECK(normal_name("ProfilerStep#12") == "ProfilerStep#");
  CHECK(normal_name("aten::linear, seq = 45, op_id = 7, sizes = [[8, 4]]") == "aten::linear, sizes = [[8, 4]]");
  CHECK(normal_name("MmBackward0, op_id=7") == "MmBackward0");
  CHECK(normal_name("<function f at 0x7F3a10>") == "<function f at 0x>");
  CHECK(normal_name("gemm_128x64_tn, seq = ") == "gemm_128x64_tn, seq = ");
  CHECK(normal_name("layer_12") == "layer_12");
  CHECK(normal_name("0xyz") == "0xyz");
  CHECK(normal_name("").empty());
}
