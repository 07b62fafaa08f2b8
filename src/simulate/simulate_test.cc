// The dependency graph and its replay on traces made by hand, where every time is known.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "model/trace_fixture.h"
#include "simulate/more_ranks.h"
#include "simulate/network_time.h"
#include "simulate/predict.h"
#include "simulate/unexplained.h"

namespace stepscope::simulate {
namespace {

constexpr std::int64_t us = 1000;

Run derived(std::vector<Trace> traces) {
  Run run;
  run.traces = std::move(traces);
  for (Trace& trace : run.traces) REQUIRE(derive::derive(trace, {}));
  derive::derive_run(run, 1);
  return run;
}

Run one(TraceFixture& fixture) {
  std::vector<Trace> traces;
  traces.push_back(std::move(fixture.trace));
  return derived(std::move(traces));
}

// A host that launches three kernels of 100 us, 10 us apart, then waits for the device: 20 + 300 us and a bit.
TraceFixture launches_and_wait() {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 1 * us, 5 * us, 1);
  f.op(cpu, "aten::relu", 10 * us, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 11 * us, 5 * us, 2);
  f.op(cpu, "aten::mm", 20 * us, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 21 * us, 5 * us, 3);
  f.slice(cpu, "cuda_runtime", "cudaDeviceSynchronize", 30 * us, 279 * us);
  f.kernel(gpu, "gemm", 7 * us, 100 * us, 1);
  f.kernel(gpu, "relu", 107 * us, 100 * us, 2);
  f.kernel(gpu, "gemm", 207 * us, 100 * us, 3);
  return f;
}

Prediction must_predict(const Run& run, const std::vector<Change>& changes) {
  const Predictor predictor(run);
  REQUIRE(predictor.can_play());
  auto made = predictor.predict(changes);
  if (!made) FAIL(to_text(made.error()));
  return *std::move(made);
}

void check_replay(const Run& run) {
  const ReplayGraph graph = replay_graph(run);
  const Played played = play(graph, graph.costs, Waits::frozen);
  for (std::size_t node = 0; node < graph.size(); node++) CHECK(played.start_ns[node] == graph.start_ns[node]);
  for (std::size_t node = 0; node < graph.size(); node++) {
    for (const Edge& edge : graph.edges_of(node)) CHECK(edge.from < node);
  }
}

TEST_CASE("simulate: a graph that is played as it was gives what was recorded") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  check_replay(run);
  const Predictor predictor(run);
  const auto waits = unexplained_waits(predictor.graph(), predictor.windows());
  CHECK(unexplained_share(predictor.graph(), waits).value() == doctest::Approx(0));
}

TEST_CASE("simulate: the device binds, so kernels count and the host does not") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction gemm = must_predict(run, {{.kind = ChangeKind::scale, .target = "kernel:gemm", .value = 0.5}});
  CHECK(gemm.now_ns == 309 * us);
  CHECK(gemm.after_ns[1] == doctest::Approx(209 * us).epsilon(0.01));
  CHECK(gemm.applied[0].calls == 2);
  CHECK(gemm.applied[0].device_ns == 200 * us);
  CHECK(gemm.binds == "stream 7 of rank 0");
  const Prediction host = must_predict(run, {{.kind = ChangeKind::scale, .target = "host:aten::relu", .value = 0}});
  CHECK(host.speedup_high == doctest::Approx(1).epsilon(0.001));
}

TEST_CASE("simulate: an operator goes with its kernels, and what is behind them comes earlier") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction gone = must_predict(run, {{.kind = ChangeKind::scale, .target = "op:aten::relu", .value = 0}});
  CHECK(gone.after_ns[1] == doctest::Approx(209 * us).epsilon(0.01));
  CHECK(gone.applied[0].host_ns == 9 * us);
  CHECK(gone.applied[0].device_ns == 100 * us);
  const Prediction set =
      must_predict(run, {{.kind = ChangeKind::set_duration, .target = "kernel:relu", .value = 40.0 * us}});
  CHECK(set.after_ns[1] == doctest::Approx(249 * us).epsilon(0.01));
}

TEST_CASE("simulate: kernels twice as fast leave the host to bind") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction fast = must_predict(run, {{.kind = ChangeKind::scale, .target = "kernel:*", .value = 0.001}});
  CHECK(fast.binds == "the main thread of rank 0");
  CHECK(fast.after_ns[1] < 45 * us);
  CHECK(fast.after_ns[0] >= 30 * us);
}

TEST_CASE("simulate: without waits the host goes on, and the device still ends the recording") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction made = must_predict(run, {{.kind = ChangeKind::no_waits}});
  CHECK(made.applied[0].calls == 1);
  CHECK(made.after_ns[1] == doctest::Approx(307 * us).epsilon(0.01));
}

TEST_CASE("simulate: fused kernels are launched once") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction made = must_predict(run, {{.kind = ChangeKind::fuse, .target = "kernel:gemm or relu"}});
  CHECK(made.after_ns[0] < 115 * us);
  CHECK(made.after_ns[1] >= 300 * us);
}

TEST_CASE("simulate: a wait that nothing shows is told, and only that") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 1 * us, 5 * us, 1);
  f.op(cpu, "aten::mm", 10 * us, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 11 * us, 5 * us, 2);
  f.op(cpu, "aten::add", 20 * us, 480 * us);
  f.kernel(gpu, "gemm", 7 * us, 100 * us, 1);
  f.kernel(gpu, "gemm", 307 * us, 100 * us, 2);  // 200 us after it could have begun
  const Run run = one(f);
  check_replay(run);
  const Predictor predictor(run);
  const auto waits = unexplained_waits(predictor.graph(), predictor.windows());
  std::int64_t unexplained = 0;
  for (const LaneWaits& lane : waits) unexplained += lane.unexplained_ns;
  CHECK(unexplained == 200 * us);
  CHECK(unexplained_share(predictor.graph(), waits).value() == doctest::Approx(0.4));
}

// Two ranks that meet in an all-reduce of 50 us; rank 1 comes 200 us later.
Trace rank_that_comes(std::int64_t rank, std::int64_t even_us, std::int64_t odd_us) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), comm = f.stream("20");
  f.trace.rank.rank = rank;
  f.trace.rank.world_size = 2;
  for (int round = 0; round < 12; round++) {
    const std::int64_t at = round * 1000 * us, compute_us = round % 2 == 0 ? even_us : odd_us;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(round), at, 1000 * us);
    f.launch(cpu, "cudaLaunchKernel", at + 1 * us, 5 * us, 10 * round + 1);
    f.kernel(gpu, "gemm", at + 7 * us, compute_us * us, 10 * round + 1);
    const SliceId call = f.op(cpu, "record_param_comms", at + 20 * us, 10 * us);
    f.collective(call, "allreduce", 1 << 20, 2);
    f.launch(cpu, "cudaLaunchKernelExC", at + 21 * us, 5 * us, 10 * round + 2);
    // the communication stream waits for the gemm by a recorded event
    const std::int64_t come = at + (7 + compute_us) * us;
    f.kernel(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", come, at + 457 * us - come, 10 * round + 2);
    f.slice(cpu, "cuda_runtime", "cudaDeviceSynchronize", at + 40 * us, 420 * us);
  }
  return std::move(f.trace);
}

// In odd rounds rank 0 takes `first_odd_us`, and rank 1 `second_odd_us`.
Run two_ranks(std::int64_t first_odd_us = 200, std::int64_t second_odd_us = 400) {
  std::vector<Trace> traces;
  traces.push_back(rank_that_comes(0, 200, first_odd_us));
  traces.push_back(rank_that_comes(1, 400, second_odd_us));
  return derived(std::move(traces));
}

TEST_CASE("simulate: ranks meet, and the last one decides when the transfer begins") {
  const Run run = two_ranks();
  const Predictor predictor(run);
  check_replay(run);
  std::size_t meetings = 0;
  for (const NodeRole role : predictor.graph().role) meetings += role == NodeRole::meeting ? 1 : 0;
  CHECK(meetings == 12);
  // Rank 1 as fast as rank 0: both are 200 us earlier in every step, whose rest is the host's own.
  const Prediction same = must_predict(run, {{.kind = ChangeKind::scale, .target = "kernel:gemm", .value = 0.5}});
  CHECK(same.now_ns == 1000 * us);
  CHECK(same.after_ns[1] == doctest::Approx(800 * us).epsilon(0.02));
  const Prediction level = must_predict(run, {{.kind = ChangeKind::level_rank, .rank = 1}});
  CHECK(level.after_ns[1] == doctest::Approx(800 * us).epsilon(0.02));
}

TEST_CASE("simulate: more bandwidth and more ranks change transfers, not the wait for the last rank") {
  const Run run = two_ranks();
  const Prediction fast = must_predict(run, {{.kind = ChangeKind::bandwidth, .value = 2}});
  CHECK(fast.after_ns[1] == doctest::Approx(975 * us).epsilon(0.01));  // 50 us of transfer become 25
  CHECK(fast.applied[0].notes.size() == 1);                            // one size only
  const Prediction wide = must_predict(run, {{.kind = ChangeKind::ranks, .value = 4}});
  CHECK(wide.after_ns[0] > 1020 * us);  // 2 (n - 1) / n: 1 becomes 1.5
}

// The moments at which a run waits for ranks that were not recorded, in the mean of its steps.
double late_us(const Run& run, std::int64_t ranks) {
  const ReplayGraph graph = replay_graph(run);
  const MoreRanks more = more_ranks(run, graph, graph.costs, ranks);
  CHECK(more.ranks == std::max<std::int64_t>(ranks, 2));
  return static_cast<double>(more.late_per_step_ns) / us;
}

TEST_CASE("simulate: further ranks take their steps as long as recorded ones did") {
  // One rank is late in every step: others like it come no later.
  CHECK(late_us(two_ranks(), 64) == doctest::Approx(0));
  // Both take 300 us in turns with 200: of 64 ranks some take 300 in every step.
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; rank++) traces.push_back(rank_that_comes(rank, 200, 300));
  const Run run = derived(std::move(traces));
  CHECK(late_us(run, 2) == 0);
  const double few = late_us(run, 4), many = late_us(run, 64);
  CHECK(few > 10);
  CHECK(few < many);
  CHECK(many == doctest::Approx(50).epsilon(0.02));
  CHECK(late_us(run, 64) == many);
}

TEST_CASE("simulate: a network is asked dimension by dimension") {
  const Network one{"", {{NetworkShape::ring, 8, 100, 500}}};
  CHECK(network_time(one, CollectiveKind::all_reduce, 8).ns_per_byte == doctest::Approx(2.0 * 7 / 8 / 100));
  CHECK(network_time(one, CollectiveKind::all_reduce, 8).latency_ns == 14 * 500);
  CHECK(network_time(one, CollectiveKind::all_gather, 4).latency_ns == 3 * 500);
  // 8 ranks inside, 4 machines outside: an eighth of the bytes leaves the machine.
  const Network two{"", {{NetworkShape::switched, 8, 100, 500}, {NetworkShape::ring, 4, 10, 5000}}};
  CHECK(places(two) == 32);
  const NetworkTime inside = network_time(two, CollectiveKind::all_reduce, 8);
  const NetworkTime outside = network_time(two, CollectiveKind::all_reduce, 32);
  CHECK(inside.latency_ns == 1000);
  CHECK(outside.latency_ns == 1000 + 2 * 3 * 5000);
  CHECK(outside.ns_per_byte - inside.ns_per_byte == doctest::Approx(2.0 * 3 / 4 / 8 / 10));
  // what is not reduced leaves whole
  const NetworkTime all = network_time(two, CollectiveKind::all_to_all, 32);
  CHECK(all.ns_per_byte == doctest::Approx(7.0 / 8 / 100 + 3.0 / 4 / 10));
}

TEST_CASE("simulate: more ranks on a network take as long as it grows") {
  const Run run = two_ranks();
  const Network network{"net.yml", {{NetworkShape::switched, 2, 100, 0}, {NetworkShape::switched, 8, 10, 0}}};
  const Prediction now = must_predict(run, {{.kind = ChangeKind::ranks, .value = 2, .network = network}});
  CHECK(now.after_ns[1] == 1000 * us);
  // 1 / 100 inside and 1.75 / 2 / 10 outside: 9.75 times the 50 us
  const Prediction wide = must_predict(run, {{.kind = ChangeKind::ranks, .value = 16, .network = network}});
  CHECK(wide.after_ns[1] == doctest::Approx((950 + 9.75 * 50) * us).epsilon(0.01));
  Network far = network;
  far.dimensions[1].latency_ns = 10 * us;  // there and back
  const Prediction later = must_predict(run, {{.kind = ChangeKind::ranks, .value = 16, .network = far}});
  CHECK(later.after_ns[1] - wide.after_ns[1] == doctest::Approx(20 * us).epsilon(0.01));
  CHECK(wide.applied[0].notes[0].find("net.yml") != std::string::npos);
  const Predictor predictor(run);
  const auto full =
      predictor.predict(std::vector<Change>{{.kind = ChangeKind::ranks, .value = 17, .network = network}});
  REQUIRE_FALSE(full);
  CHECK(full.error().message == "the network has place for 16 ranks, not for 17");
}

TEST_CASE("simulate: transfers are fitted without the moments of arrival") {
  const Run run = two_ranks();
  const Predictor predictor(run);
  REQUIRE(predictor.models().size() == 1);
  const CommModel& model = predictor.models()[0];
  CHECK(model.nodes.size() == 24);
  CHECK(*model.ns_per_byte == doctest::Approx(50.0 * us / (4 << 20)));
  CHECK(*model.residual < 0.001);
  const Prediction half = must_predict(run, {{.kind = ChangeKind::scale, .target = "kernel:nccl", .value = 0.5}});
  CHECK(half.applied[0].calls == 24);
  CHECK(must_predict(run, {{.kind = ChangeKind::overlap}}).applied[0].calls == 24);
}

TEST_CASE("simulate: ranks do not wait for each other where their collective is gone") {
  const Run run = two_ranks(400, 200);  // they are late in turns
  const Prediction gone = must_predict(run, {{.kind = ChangeKind::scale, .target = "kernel:nccl", .value = 0}});
  CHECK(gone.now_ns == 1000 * us);
  CHECK(gone.after_ns[1] == doctest::Approx(850 * us).epsilon(0.01));
}

TEST_CASE("simulate: a call that waits for the device waits for every stream") {
  const Run run = two_ranks();
  // The all-reduce ended last; without it the matrix product of 400 us remains to be waited for.
  const Prediction overlapped = must_predict(run, {{.kind = ChangeKind::overlap}});
  CHECK(overlapped.after_ns[1] == doctest::Approx(950 * us).epsilon(0.01));
}

TEST_CASE("simulate: communication of a thread ends before the step, overlapped or not") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), worker = f.host("2");
  for (int round = 0; round < 4; round++) {
    const std::int64_t at = round * 1000 * us;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(round), at, 1000 * us);
    f.op(cpu, "aten::mm", at, 100 * us);
    f.op(cpu, "c10d::allreduce_", at + 100 * us, 20 * us);
    f.op(worker, "gloo:all_reduce", at + 120 * us, 840 * us, {}, "user_annotation");
    f.op(cpu, "aten::add", at + 970 * us, 30 * us);
  }
  const Run run = one(f);
  check_replay(run);
  const Prediction made = must_predict(run, {{.kind = ChangeKind::overlap}});
  CHECK(made.now_ns == 1000 * us);
  CHECK(made.after_ns[1] >= 840 * us);
  CHECK(made.binds == "communication of rank 0");
}

// Steps of these lengths in us, 20 ms between the first `before_gap` of them and the others.
Run steps_with_gap(const std::vector<std::int64_t>& lengths, std::size_t before_gap, bool in_parts,
                   std::int64_t gap_us = 20'000) {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::empty", 0, 10 * us);
  std::int64_t at = 100 * us;
  for (std::size_t i = 0; i < lengths.size(); i++) {
    if (i == before_gap) at += gap_us * us;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(i), at, lengths[i] * us);
    f.op(cpu, "aten::mm", at + 10 * us, (lengths[i] - 20) * us);
    at += lengths[i] * us;
  }
  f.op(cpu, "aten::empty", at + 100 * us, 10 * us);
  if (in_parts) f.trace.source.parts = {"part0.json", "part1.json"};
  return one(f);
}

TEST_CASE("simulate: between two parts of a recording it was written, and that is no time of the steps") {
  const std::vector<std::int64_t> late{1000, 1000, 1000, 2000, 2000}, early{2000, 2000, 1000, 1000, 1000};
  CHECK(must_predict(steps_with_gap(late, 3, true), {}).now_ns == 1000 * us);
  CHECK(must_predict(steps_with_gap(early, 2, true), {}).now_ns == 1000 * us);
  CHECK(must_predict(steps_with_gap({2000, 2000, 1000, 1000}, 2, true), {}).now_ns == 1000 * us);  // the last of equals
  const Prediction half = must_predict(steps_with_gap(late, 3, true),
                                       {{.kind = ChangeKind::scale, .target = "host:aten::mm", .value = 0.5}});
  CHECK(half.after_ns[1] == doctest::Approx(510 * us).epsilon(0.01));
  // In one part it is the program that did nothing there; and a moment between steps is theirs.
  CHECK(must_predict(steps_with_gap(late, 3, false), {}).now_ns == 27'000 * us / 5);
  CHECK(must_predict(steps_with_gap(late, 3, true, 300), {}).now_ns == 7'300 * us / 5);
}

// Two ranks on one machine that meet in gloo's all-reduce. Rank 0 sorts for 6 ms before it comes; rank 1 goes on at
// 11 ms, its thread notes the end of the all-reduce so much later. `come_us`: when rank 0 comes.
Run ranks_of_gloo(std::int64_t noted_late_us, std::int64_t come_us = 10'000) {
  std::vector<Trace> traces;
  for (const std::int64_t rank : {0, 1}) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    f.trace.clock_base_ns = 1'700'000'000'000'000'000;
    f.trace.metadata.push_back({"host_name", "\"node\""});
    const TrackId cpu = f.host("1"), worker = f.host("2");
    f.op(cpu, "aten::empty", 0, 10 * us);
    for (int round = 0; round < 8; round++) {
      const std::int64_t at = (100 + round * 15'000) * us, come = at + (rank == 0 ? come_us : 4000) * us;
      f.annotation(cpu, "ProfilerStep#" + std::to_string(round), at, 15'000 * us);
      f.op(cpu, "aten::mm", at, 4000 * us);
      if (rank == 0) f.op(cpu, "aten::sort", at + 4000 * us, come - at - 4000 * us);
      f.op(cpu, "c10d::allreduce_", come, 20 * us);
      const std::int64_t end = at + (11'000 + (rank == 1 ? noted_late_us : 0)) * us;
      f.op(worker, "gloo:all_reduce", come + 30 * us, end - come - 30 * us,
           {.dims = "[[4096]]", .types = R"(["float"])"}, "user_annotation");
      f.op(cpu, "aten::add", at + 11'000 * us, 4000 * us);
    }
    f.op(cpu, "aten::empty", (200 + 8 * 15'000) * us, 10 * us);
    traces.push_back(std::move(f.trace));
  }
  return derived(std::move(traces));
}

TEST_CASE("simulate: a rank waits for the last one in gloo, however late its thread notes the end") {
  const std::vector<Change> no_sort{{.kind = ChangeKind::scale, .target = "host:aten::sort", .value = 0}};
  for (const std::int64_t noted_late_us : {0, 3000}) {
    CAPTURE(noted_late_us);
    const Run run = ranks_of_gloo(noted_late_us);
    REQUIRE(run.traces[1].clock.source == ClockSource::same_host);
    check_replay(run);
    const Prediction made = must_predict(run, no_sort);
    CHECK(made.now_ns == 15'000 * us);
    CHECK(made.after_ns[1] == doctest::Approx(9000 * us).epsilon(0.02));
    CHECK(made.applied[0].calls == 8);
  }
  // Rank 0 had come long before rank 1 went on: that did something of its own.
  const Prediction own = must_predict(ranks_of_gloo(3000, 6000), no_sort);
  CHECK(own.now_ns == 15'000 * us);
  CHECK(own.after_ns[0] == doctest::Approx(15'000 * us).epsilon(0.01));
}

TEST_CASE("simulate: only neighbors within a step are fused, and a collective alone is none") {
  const Run run = two_ranks();
  const Predictor predictor(run);
  for (const char* target : {"kernel:gemm", "kernel:nccl"}) {
    CHECK_FALSE(predictor.predict(std::vector<Change>{{.kind = ChangeKind::fuse, .target = target}}));
  }
}

TEST_CASE("simulate: a graph is launched as long as one of its kernels is") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.launch(cpu, "cudaGraphLaunch", 0, 40 * us, 1);
  f.op(cpu, "aten::mm", 40 * us, 60 * us);
  for (int i = 0; i < 3; i++) f.kernel(gpu, i < 2 ? "add" : "gemm", (10 + 10 * i) * us, 10 * us, 1);
  const Run run = one(f);
  const Prediction made = must_predict(run, {{.kind = ChangeKind::fuse, .target = "kernel:add"}});
  CHECK(made.after_ns[0] == 100 * us);
}

TEST_CASE("simulate: the predicted run and its path have the slow end of a fused kernel") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Prediction made = must_predict(run, {{.kind = ChangeKind::fuse, .target = "kernel:gemm or relu"}});
  std::int64_t longest = 0;
  for (const std::int64_t cost : made.costs.cost_ns) longest = std::max(longest, cost);
  CHECK(longest == 300 * us);
  CHECK(made.path.front().time_ns == 300 * us);
  CHECK_FALSE(made.path.front().handed_over);
}

TEST_CASE("simulate: a launch call of seconds explains as much") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  constexpr std::int64_t kSecond = 1'000'000'000;
  f.launch(cpu, "cudaLaunchKernel", 0, 3 * kSecond, 1);  // it loads code first
  f.kernel(gpu, "gemm", 2'100'000'000, 100 * us, 1);
  f.kernel(gpu, "gemm", 2'200'000'000, 3 * kSecond, 1);
  f.kernel(gpu, "relu", 4'500'000'000, 100 * us, 1);  // at once with the one before it
  const Run run = one(f);
  check_replay(run);
  const Predictor predictor(run);
  for (const Edge& edge : predictor.graph().edges) CHECK(edge.lag_ns >= 0);
}

TEST_CASE("simulate: of work without a launch and with none before it nothing is inferred") {
  TraceFixture f;
  const TrackId first = f.stream("7"), second = f.stream("8");
  f.kernel(first, "gemm", 7 * us, 100 * us);
  f.kernel(second, "relu", 108 * us, 10 * us);
  const Run run = one(f);
  check_replay(run);
  CHECK(replay_graph(run).edges.empty());
}

TEST_CASE("simulate: a clock that drifts does not make kernels longer in the predicted run") {
  Run run = two_ranks();
  run.traces[1].clock.drift = 1e-4;
  {
    const Predictor predictor(run);
    move_to(run, predictor.graph(), predictor.graph().costs, predictor.now());
  }
  const Trace& trace = run.traces[1];
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    CHECK(trace.slices.dur_ns[trace.device.slice[row]] <= 451 * us);
  }
}

TEST_CASE("simulate: all of a phase or rank is that of the device too") {
  const Run run = two_ranks();
  const Predictor predictor(run);
  const auto all = select(run, predictor.graph(), "rank:*");
  REQUIRE(all);
  CHECK(all->device_ns > 0);
  CHECK(all->host_ns > 0);
}

// One step of a model of two layers, on the host alone: 20 and 30 us there, and of the first layer 40 us in the
// backward pass.
TraceFixture two_layers() {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 60 * us);
  f.op(cpu, "stepscope.module: layers.1 (Linear)", 0, 20 * us);
  f.op(cpu, "aten::addmm", 0, 20 * us, {.sequence = 5});
  f.op(cpu, "stepscope.module: layers.10 (Linear)", 20 * us, 30 * us);
  f.op(cpu, "aten::addmm", 20 * us, 30 * us, {.sequence = 6});
  f.op(cpu, "autograd::engine::evaluate_function: AddmmBackward0", 60 * us, 40 * us, {.sequence = 5, .fwd_thread = 1});
  return f;
}

TEST_CASE("simulate: a module goes with its backward pass, and only that of the very path") {
  TraceFixture f = two_layers();
  const Run run = one(f);
  const auto left_ns = [&](ChangeKind kind, const char* target, double value) {
    const auto made = Predictor(run).predict(std::vector<Change>{{.kind = kind, .target = target, .value = value}});
    REQUIRE(made);
    return made->after_ns[1];
  };
  CHECK(left_ns(ChangeKind::scale, "module:layers.1", 0) == 40 * us);
  CHECK(left_ns(ChangeKind::scale, "module:layers.10", 0.5) == 85 * us);
  CHECK(left_ns(ChangeKind::scale, "module:layers", 0) == 10 * us);  // nobody calls a list; they are in it
  CHECK(left_ns(ChangeKind::scale, "module:Linear", 0) == 10 * us);  // by their class
  CHECK(left_ns(ChangeKind::set_duration, "module:layers.1", 10 * us) == 70 * us);  // half as long, and its gradients
}

TEST_CASE("simulate: a module has the device work that is launched in it, once where it is called in itself") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 60 * us);
  f.op(cpu, "stepscope.module: layers.0 (Block)", 0, 40 * us);
  f.op(cpu, "stepscope.module: layers.0.0 (Linear)", 5 * us, 20 * us);
  f.op(cpu, "aten::mm", 6 * us, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 7 * us, 5 * us, 1);
  f.op(cpu, "aten::mm", 45 * us, 9 * us);
  f.launch(cpu, "cudaLaunchKernel", 46 * us, 5 * us, 2);
  f.kernel(gpu, "gemm", 12 * us, 100 * us, 1);
  f.kernel(gpu, "gemm", 112 * us, 100 * us, 2);
  const Run run = one(f);
  const Predictor predictor(run);
  for (const char* target : {"module:layers.0", "module:Block", "module:Blo", "module:layers"}) {
    const auto found = select(run, predictor.graph(), target);
    REQUIRE(found);
    CHECK(found->calls == 1);
    CHECK(found->device_ns == 100 * us);
    CHECK(found->host_ns == 40 * us);
  }
}

TEST_CASE("simulate: what cannot be meant is refused with what to do") {
  TraceFixture f = launches_and_wait();
  const Run run = one(f);
  const Predictor predictor(run);
  const auto error = [&](Change change) {
    const auto made = predictor.predict(std::vector{std::move(change)});
    REQUIRE_FALSE(made);
    CHECK_FALSE(made.error().hint.empty());
    return made.error();
  };
  CHECK(error({.kind = ChangeKind::scale, .target = "kernel:conv", .value = 0.5}).kind == ErrorKind::not_found);
  CHECK(error({.kind = ChangeKind::scale, .target = "module:head", .value = 0}).kind == ErrorKind::not_found);
  CHECK(error({.kind = ChangeKind::scale, .target = "kernels:gemm", .value = 0.5}).message.find("did you mean") !=
        std::string::npos);
  CHECK(error({.kind = ChangeKind::scale, .target = "gemm", .value = 0.5}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::scale, .target = "kernel:", .value = 0.5}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::scale, .target = "kernel:gemm", .value = -1}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::data_loader, .value = 0}).kind == ErrorKind::not_found);
  CHECK(error({.kind = ChangeKind::ranks, .value = 2.5}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::overlap}).kind == ErrorKind::not_found);
  CHECK(error({.kind = ChangeKind::ranks, .value = 1e300}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::data_loader, .value = INFINITY}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::bandwidth, .value = 1e-320}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::scale, .target = "kernel:gemm", .value = 1e300}).kind == ErrorKind::usage);
  CHECK(error({.kind = ChangeKind::set_duration, .target = "phase:forward", .value = 5}).kind == ErrorKind::usage);
}

TEST_CASE("simulate: a change that leaves nothing of a step has no gain that could be told") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 9 * us);
  const Run run = one(f);
  const auto made =
      Predictor(run).predict(std::vector<Change>{{.kind = ChangeKind::scale, .target = "host:*", .value = 0}});
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "nothing is left of a step");
}

TEST_CASE("simulate: a recording of nothing that ran cannot be played") {
  TraceFixture f;
  const Run run = one(f);
  CHECK_FALSE(Predictor(run).can_play());
}

TEST_CASE("simulate: the predicted run is a trace, moved to when things would have been") {
  TraceFixture f = launches_and_wait();
  Run run = one(f);
  {
    const Predictor predictor(run);
    const auto made =
        predictor.predict(std::vector<Change>{{.kind = ChangeKind::scale, .target = "kernel:gemm", .value = 0.5}});
    REQUIRE(made);
    move_to(run, predictor.graph(), made->costs, made->played);
  }
  const Trace& trace = run.traces[0];
  std::vector<std::int64_t> starts, lasted;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    starts.push_back(trace.slices.start_ns[trace.device.slice[row]]);
    lasted.push_back(trace.slices.dur_ns[trace.device.slice[row]]);
  }
  CHECK(starts == std::vector<std::int64_t>{7 * us, 57 * us, 157 * us});
  CHECK(lasted == std::vector<std::int64_t>{50 * us, 100 * us, 50 * us});
  CHECK(trace.slices.end_ns(static_cast<SliceId>(6)) == doctest::Approx(209 * us).epsilon(0.01));
}

}  // namespace
}  // namespace stepscope::simulate
