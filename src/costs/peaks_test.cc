// Peaks: lines of a table, which device they are of, and for which types.
#include "costs/peaks.h"

#include <doctest/doctest.h>

namespace stepscope::costs {
namespace {

std::vector<DevicePeaks> built_in() {
  auto table = parse_peaks(built_in_peaks(), "");
  REQUIRE_MESSAGE(table, (table ? "" : to_text(table.error())));
  return *std::move(table);
}

TEST_CASE("peaks: the built-in table knows the devices of large models by the names that drivers give them") {
  const auto table = built_in();
  const auto peak = [&](std::string_view device, std::string_view type) {
    const DevicePeaks* found = peaks_of(table, device);
    REQUIRE_MESSAGE(found != nullptr, device);
    CHECK_FALSE(found->source.empty());
    return found->flop_per_s(type).value_or(0) / 1e12;
  };
  CHECK(peak("NVIDIA H100 80GB HBM3", "bfloat16") == 989);
  CHECK(peak("NVIDIA H100 PCIe", "bfloat16") == 756);
  CHECK(peak("NVIDIA H200", "float8_e4m3fn") == 1979);
  CHECK(peak("NVIDIA H20", "bfloat16") == 148);
  CHECK(peak("NVIDIA GB200", "float4_e2m1fn_x2") == 10000);
  CHECK(peak("NVIDIA B200", "bfloat16") == 2250);
  CHECK(peak("NVIDIA A100-SXM4-80GB", "tfloat32") == 156);
  CHECK(peak("A100-SXM4-40GB", "float16") == 312);
  CHECK(peak("NVIDIA A10G", "float16") == 70);
  CHECK(peak("NVIDIA L4", "bfloat16") == 121);
  CHECK(peak("NVIDIA L40S", "bfloat16") == 362);
  CHECK(peak("Tesla V100-SXM2-32GB", "float16") == 125);
  CHECK(peak("Tesla V100-PCIE-16GB", "float32") == 14);
  CHECK(peak("Tesla T4", "float16") == 65);
  CHECK(peak("NVIDIA GeForce RTX 4090", "float32") == 82.6);
  CHECK(peak("AMD Instinct MI300X", "bfloat16") == 1307.4);
  CHECK(peak("AMD Instinct MI250X", "bfloat16") == 191.5);
  CHECK(peak("Tesla V100-SXM2-32GB", "bfloat16") == 0);  // has none
  CHECK(peaks_of(table, "Made-up GPU") == nullptr);
  CHECK(peaks_of(table, "NVIDIA RTX A4000") == nullptr);  // no A40
  CHECK(peaks_of(table, "") == nullptr);
  CHECK(table.size() >= 12);
}

TEST_CASE("peaks: figures are dense, so half precision is at most what a line gives for float8") {
  for (const DevicePeaks& peaks : built_in()) {
    CAPTURE(peaks.source);
    const auto half = peaks.flop_per_s("float16"), eight = peaks.flop_per_s("float8");
    REQUIRE(half);
    CHECK(*half >= peaks.flop_per_s("float32").value_or(0));
    if (eight) CHECK(*eight == doctest::Approx(2 * *half).epsilon(0.02));
  }
}

TEST_CASE("peaks: a line that is none is named with its number") {
  const auto table = parse_peaks("# mine\n\nMy GPU | 900 | float32 14, bfloat16 28.5 | me\n", "mine.txt");
  REQUIRE(table);
  REQUIRE(table->size() == 1);
  CHECK(peaks_of(*table, "my gpu 7")->flop_per_s("bfloat16") == 28.5e12);
  CHECK(table->front().gb_per_s == 900);
  for (const char* bad :
       {"GPU | 1 | float32 1", "GPU | fast | float32 1 | me", "GPU | 1 | float32 | me", "GPU | 1 | float32 -1 | me",
        "| 1 | float32 1 | me", "GPU | 1 | | me", "GPU | 1 | a nan | b"}) {
    CAPTURE(bad);
    const auto refused = parse_peaks(std::string("# one\n") + bad, "mine.txt");
    REQUIRE_FALSE(refused);
    CHECK(to_text(refused.error()).find("line 2") != std::string::npos);
  }
}

}  // namespace
}  // namespace stepscope::costs
