#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

const std::string kAdd = "vectorized_elementwise_kernel<4, CUDAFunctor_add>";
const std::string kNorm = "vectorized_layer_norm_kernel";

// Three steps of four layers: gemm, add, norm; kernels of 10, 4 and 6 ns, 2 ns apart; one other kernel a step.
Run layers() {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  Ns correlation = 0;
  for (int step = 0; step < 3; step++) {
    const Ns t = step * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 900);
    Ns at = t + 100;
    const auto kernel = [&](const std::string& name, Ns duration) {
      f.launch(cpu, "cudaLaunchKernel", at - 50, 1, ++correlation);
      f.kernel(gpu, name, at, duration, correlation);
      at += duration + 2;
    };
    kernel("first_of_step" + std::to_string(step), 5);
    for (int layer = 0; layer < 4; layer++) {
      f.annotation(cpu, "block", at - 50, 23);
      kernel("ampere_sgemm_128x64_tn", 10);
      kernel(kAdd, 4);
      kernel(kNorm, 6);
    }
  }
  return run_of(std::move(f));
}

TEST_CASE("sequences: the layer is found, not two layers or a rotation of it") {
  const Answer answer = ask(layers(), "sequences");
  const Table& repeated = *answer.table("repeated");
  REQUIRE(repeated.rows.size() == 1);
  const auto& row = repeated.rows[0];
  CHECK(row[3] == Value(Ns{3}));
  CHECK(row[4] == Value(Ns{12}));
  CHECK(row[5] == Value(Ns{12 * 20}));
  CHECK(row[7] == Value(Ns{12 * 4}));
  CHECK(row[9] == Value(std::string("block")));
  CHECK(std::get<std::string>(row[12]) == "ampere_sgemm_128x64_tn | " + kAdd + " | " + kNorm);
  CHECK(real(answer, "repeated_share") == doctest::Approx(240.0 / 255.0));
}

TEST_CASE("sequences: short kernels in a row could be one") {
  const Answer answer = ask(layers(), "sequences");
  CHECK(ns(answer, "fusible_run_count") == 12);
  CHECK(ns(answer, "fusible_kernel_count") == 24);
  CHECK(ns(answer, "fusible_ns") == 12 * 10);
  CHECK(ns(answer, "fusible_gap_ns") == 12 * 2);
  const Table& fusible = *answer.table("fusible");
  REQUIRE(fusible.rows.size() == 1);
  CHECK(fusible.rows[0][8] == Value(Ns{12}));  // one launch of 1 ns each
  CHECK(answer.findings.empty());              // 24 of 2,250 ns
}

TEST_CASE("sequences: nothing goes over the border of a step, or onto another stream") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("8");
  for (int step = 0; step < 4; step++) {
    const Ns t = step * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 900);
    f.launch(cpu, "cudaLaunchKernel", t + 10, 5, 2 * step + 1);
    f.kernel(gpu, "a", t + 100, 10, 2 * step + 1);
    f.launch(cpu, "cudaLaunchKernel", t + 20, 5, 2 * step + 2);
    f.kernel(side, "b", t + 110, 10, 2 * step + 2);
  }
  CHECK(ask(run_of(std::move(f)), "sequences").table("repeated")->rows.empty());
}

TEST_CASE("sequences: a host alone has none, and the reason") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "sequences");
  CHECK(unknown(answer, "repeated_share"));
  CHECK(unknown(answer, "fusible_gap_ns"));
}

}  // namespace
}  // namespace stepscope
