#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

TEST_CASE("serving: rounds by kind, with time per token") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.annotation(cpu, "execute_context_2(100)_generation_0(0)", 0, 1'000);
  f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);
  f.kernel(gpu, "k", 500, 2'000, 1);  // runs on after the mark, and still belongs to it
  for (int i = 1; i <= 3; i++) {
    f.annotation(cpu, "execute_context_0(0)_generation_4(4)", i * 1'000, 500);
    f.annotation(cpu, "execute_model", i * 1'000 + 10, 400);  // inside a round: not another one
    f.launch(cpu, "cudaGraphLaunch", i * 1'000 + 20, 5, 10 + i);
    f.kernel(gpu, "k", i * 1'000 + 2'000, 100, 10 + i);
  }
  const Answer answer = ask(run_of(std::move(f)), "serving");
  CHECK(ns(answer, "round_count") == 4);
  CHECK(ns(answer, "token_count") == 112);
  CHECK(cell(answer, "kinds", "kind", "prefill", "device_total_ns") == Value(Ns{2'000}));
  CHECK(cell(answer, "kinds", "kind", "prefill", "host_ns_per_token") == Value(10.0));
  CHECK(cell(answer, "kinds", "kind", "decode", "rounds") == Value(Ns{3}));
  CHECK(cell(answer, "kinds", "kind", "decode", "mean_requests") == Value(4.0));
  CHECK(cell(answer, "kinds", "kind", "decode", "device_ns_per_token") == Value(25.0));
  CHECK(answer.table("rounds")->rows.size() == 4);
  CHECK(answer.table("batches")->rows.size() == 2);
}

TEST_CASE("serving: on a host only, device time is unknown; without marks everything is") {
  TraceFixture f;
  f.annotation(f.host("1"), "step[DECODE bs=16]", 0, 1'600);
  const Answer answer = ask(run_of(std::move(f)), "serving");
  CHECK(cell(answer, "kinds", "kind", "decode", "device_total_ns") == Value());
  CHECK(cell(answer, "kinds", "kind", "decode", "host_ns_per_token") == Value(100.0));
  TraceFixture none;
  none.op(none.host("1"), "aten::mm", 0, 10);
  const Answer empty = ask(run_of(std::move(none)), "serving");
  CHECK(unknown(empty, "round_count"));
  CHECK(empty.table("kinds")->rows.empty());
}

}  // namespace
}  // namespace stepscope
