// Causes among ranks with devices, on traces made by hand: links, groups, and ranks whose device is slower.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/groups.h"
#include "diagnose/steps_fixture.h"
#include "model/unrelated_files.h"

namespace stepscope::diagnose {
namespace rank_causes {
namespace {

constexpr std::int64_t kElements = 16 << 20;  // of float: 64 MiB

struct Send {
  std::string group, ranks;
  std::int64_t size = 2, ns = 0;
};

// What a rank does in a step: a kernel, then collectives, each of which ends at the same moment on all ranks.
struct Rank {
  std::string machine = "node1", device = "NVIDIA H100 80GB HBM3";
  std::int64_t compute_ns = 0;
  std::string_view dims = {};
  std::vector<Send> sends;
};

Trace trace_of(const Rank& rank, int number, std::int64_t longest_ns) {
  TraceFixture f;
  f.trace.rank.rank = number;
  f.trace.metadata.push_back({"host_name", "\"" + rank.machine + "\""});
  f.trace.devices.push_back({.id = 0, .name = rank.device, .compute_major = 9});
  const TrackId cpu = f.host("1"), compute = f.stream("7"), network = f.stream("13");
  std::int64_t at_ns = 0, call = 0, sequence = 0;
  for (int step = 1; step <= 4; step++) {
    const std::int64_t begin_ns = at_ns;
    f.op(cpu, "aten::mm", at_ns, 20 * us, {.dims = rank.dims});
    f.launch(cpu, "cudaLaunchKernel", at_ns + 5 * us, 10 * us, ++call);
    f.kernel(compute, "gemm", at_ns + 20 * us, rank.compute_ns, call);
    std::int64_t ready_ns = at_ns + 20 * us + rank.compute_ns, end_ns = at_ns + 20 * us + longest_ns;
    at_ns += 20 * us;
    for (const Send& send : rank.sends) {
      end_ns += send.ns;
      f.op(cpu, "c10d::allreduce_", at_ns, 20 * us);
      f.launch(cpu, "cudaLaunchKernel", at_ns + 5 * us, 10 * us, ++call);
      const SliceId kernel =
          f.kernel(network, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", ready_ns, end_ns - ready_ns, call);
      f.collective(kernel, "allreduce", kElements, send.size);
      Collectives& rows = f.trace.collectives;
      rows.group_name[rows.size() - 1] = f.trace.strings.intern(send.group);
      rows.group_ranks[rows.size() - 1] = f.trace.strings.intern(send.ranks);
      rows.sequence.set(rows.size() - 1, ++sequence);
      at_ns += 20 * us;
      ready_ns = end_ns;
    }
    f.launch(cpu, "cudaDeviceSynchronize", at_ns, end_ns - at_ns, ++call);
    at_ns = end_ns + 10 * us;
    f.slice(cpu, "user_annotation", "ProfilerStep#" + std::to_string(step), begin_ns, at_ns - begin_ns);
  }
  return std::move(f.trace);
}

Run run_with(const std::vector<Rank>& ranks) {
  Run run;
  std::int64_t longest_ns = 0;
  for (const Rank& rank : ranks) longest_ns = std::max(longest_ns, rank.compute_ns);
  for (std::size_t i = 0; i < ranks.size(); i++) {
    run.traces.push_back(trace_of(ranks[i], static_cast<int>(i), longest_ns));
    REQUIRE(derive::derive(run.traces.back(), {}));
  }
  derive::derive_run(run, 1);
  return run;
}

TEST_CASE("advice: collectives far below NVLink, and near it") {
  // 64 MiB over two ranks: bus factor 1.
  const auto job = [](std::int64_t send_ns, std::string device) {
    const Rank rank{.device = std::move(device), .compute_ns = 2 * ms, .sends = {{"dp", "[0, 1]", 2, send_ns}}};
    return advice_of(run_with({rank, rank}));
  };
  const Answer slow = job(3 * ms, "NVIDIA H100 80GB HBM3");  // 22 GB/s
  const Finding* found = find(slow, "slow_link");
  REQUIRE(found != nullptr);
  CHECK(found->where.op == "group dp");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(5.05 / 2.25).epsilon(0.03));
  CHECK(find(job(250 * us, "NVIDIA H100 80GB HBM3"), "slow_link") == nullptr);  // 268 GB/s
  CHECK(find(job(3 * ms, "NVIDIA L40S"), "slow_link") == nullptr);              // which has no NVLink
}

// Two ranks on a machine that do the same.
Run two_ranks(const std::function<void(TraceFixture&)>& record) {
  Run run;
  for (int rank = 0; rank < 2; rank++) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    f.trace.clock_base_ns = 1'700'000'000'000'000'000;
    f.trace.metadata.push_back({"host_name", "\"node1\""});
    record(f);
    run.traces.push_back(std::move(f.trace));
    REQUIRE(derive::derive(run.traces.back(), {}));
  }
  derive::derive_run(run, 1);
  return run;
}

// Two ranks that add up each gradient alone on threads of gloo, while products of the same sizes run: beside them these
// take `beside_ns`, in the forward pass one millisecond.
Run crumbs(std::int64_t beside_ns, std::int64_t call_ns) {
  return two_ranks([&](TraceFixture& f) {
    const TrackId cpu = f.host("1"), worker = f.host("2");
    std::int64_t at_ns = 0;
    for (int step = 0; step < 4; step++) {
      const std::int64_t begin_ns = at_ns;
      const auto product = [&](std::int64_t ns) {
        f.op(cpu, "aten::mm", at_ns, ns, {.dims = "[[64, 64], [64, 64]]"});
        at_ns += ns;
      };
      for (int i = 0; i < 10; i++) product(ms);
      for (int i = 0; i < 10; i++) {
        f.op(cpu, "autograd::engine::evaluate_function: MmBackward0", at_ns, us);
        at_ns += us;
        f.op(cpu, "c10d::allreduce_", at_ns, call_ns);
        f.op(worker, "gloo:all_reduce", at_ns + us, call_ns + beside_ns, {.dims = "[[1024]]", .types = R"(["float"])"},
             "user_annotation");
        at_ns += call_ns + us;
        product(beside_ns);
      }
      at_ns += 10 * us;
      f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin_ns, at_ns - begin_ns);
    }
  });
}

TEST_CASE("advice: with communication goes what it takes from operators beside it") {
  const Answer slowed = advice_of(crumbs(2 * ms, 200 * us));
  const Finding* found = find(slowed, "small_buckets");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(32.0 / 21.2)).epsilon(0.01));  // the last one stays
  CHECK(find(advice_of(crumbs(1 * ms, us)), "small_buckets") == nullptr);  // it is hidden, and costs nothing
}

// Two ranks whose gradients travel on a thread of gloo once the backward pass has ended, 4 ms of 14: asked for by a
// hook in that pass, or by the program behind it.
Run behind_backward(bool by_hook) {
  return two_ranks([&](TraceFixture& f) {
    const TrackId cpu = f.host("1"), worker = f.host("2");
    std::int64_t at_ns = 0;
    for (int step = 0; step < 4; step++) {
      const std::int64_t begin_ns = at_ns;
      f.op(cpu, "aten::mm", at_ns, 5 * ms, {.dims = "[[64, 64], [64, 64]]"});
      f.op(cpu, "autograd::engine::evaluate_function: MmBackward0", at_ns + 5 * ms, 5 * ms);
      at_ns += 10 * ms;
      if (by_hook) f.op(cpu, "c10d::allreduce_", at_ns - 100 * us, 20 * us);
      if (!by_hook) f.op(cpu, "c10d::allreduce_", at_ns + 10 * us, 20 * us);
      f.op(worker, "gloo:all_reduce", at_ns + 50 * us, 4 * ms, {.dims = "[[1024]]", .types = R"(["float"])"},
           "user_annotation");
      at_ns += 4 * ms + 60 * us;
      f.op(cpu, "aten::add", at_ns, 100 * us);
      at_ns += 110 * us;
      f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin_ns, at_ns - begin_ns);
    }
  });
}

TEST_CASE("advice: what a backward pass asks for itself is not asked for behind it, however late it begins") {
  const Answer by_program = advice_of(behind_backward(false));
  const Finding* found = find(by_program, "exposed_communication");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.3);
  const auto count = std::find_if(found->evidence.begin(), found->evidence.end(),
                                  [](const Evidence& one) { return one.text == "Such collectives per step"; });
  REQUIRE(count != found->evidence.end());
  CHECK(count->value == Value(1.0));
  CHECK(find(advice_of(behind_backward(true)), "exposed_communication") == nullptr);
}

// Two ranks of which one sends a buffer of 40 MB to the other, in `every`-th of four steps of 9 ms.
Run sent_around(int every, bool by_ddp = true) {
  return two_ranks([&](TraceFixture& f) {
    const TrackId cpu = f.host("1"), worker = f.host("2");
    std::int64_t at_ns = 0;
    for (int step = 0; step < 4; step++) {
      const std::int64_t begin_ns = at_ns;
      if (step % every == 0) {
        f.annotation(cpu, by_ddp ? "DistributedDataParallel.forward" : "forward", at_ns, 4 * ms + 20 * us);
        f.op(cpu, "c10d::broadcast_", at_ns + us, 19 * us);
        f.op(worker, "gloo:broadcast", at_ns + 10 * us, 4 * ms, {.dims = "[[10000000]]", .types = R"(["float"])"},
             "user_annotation");
        at_ns += 4 * ms + 20 * us;
      }
      f.op(cpu, "aten::mm", at_ns, 5 * ms, {.dims = "[[64, 64], [64, 64]]"});
      at_ns += 5 * ms + 10 * us;
      f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin_ns, at_ns - begin_ns);
    }
  });
}

TEST_CASE("advice: buffers that DistributedDataParallel sends in each step") {
  const Answer each = advice_of(sent_around(1));
  const Finding* found = find(each, "buffer_broadcast");
  REQUIRE(found != nullptr);
  CHECK(found->next.value_or("").find("broadcast_buffers=False") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(9.03 / 5.03)).epsilon(0.02));
  CHECK(find(advice_of(sent_around(4)), "buffer_broadcast") == nullptr);
  CHECK(find(advice_of(sent_around(1, false)), "buffer_broadcast") == nullptr);  // the program's own
}

TEST_CASE("advice: the group that moves most goes between machines") {
  const auto job = [](bool tensor_outside) {
    std::vector<Rank> ranks;
    for (const std::string_view machine : {"a", "a", "b", "b"}) {
      const bool first = ranks.size() % 2 == 0;
      const std::string inside = machine == "a" ? "[0, 1]" : "[2, 3]", outside = first ? "[0, 2]" : "[1, 3]";
      Rank rank{.machine = std::string(machine), .device = "NVIDIA A40", .compute_ns = 2 * ms};
      const std::string tensor = tensor_outside ? outside : inside, data = tensor_outside ? inside : outside;
      for (int i = 0; i < 3; i++) {
        rank.sends.push_back({"tp " + tensor, tensor, 2, tensor_outside ? 3 * ms : 300 * us});
      }
      rank.sends.push_back({"dp " + data, data, 2, tensor_outside ? 300 * us : 3 * ms});
      ranks.push_back(std::move(rank));
    }
    return advice_of(run_with(ranks));
  };
  const Answer wrong = job(true);
  const Finding* found = find(wrong, "group_across_machines");
  REQUIRE(found != nullptr);
  REQUIRE(found->where.op);
  CHECK(found->where.op->starts_with("group tp"));
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(11.35 / 5.95).epsilon(0.02));
  CHECK(find(job(false), "group_across_machines") == nullptr);
}

TEST_CASE("advice: a rank whose device takes longer for the same kernels") {
  const auto job = [](std::int64_t second_ns, std::string_view first_dims, std::string_view second_dims) {
    const Send send{"dp", "[0, 1]", 2, 300 * us};
    return advice_of(run_with({{.compute_ns = 2 * ms, .dims = first_dims, .sends = {send}},
                               {.compute_ns = second_ns, .dims = second_dims, .sends = {send}}}));
  };
  constexpr std::string_view kSmall = "[[512, 512], [512, 512]]", kLarge = "[[1024, 512], [512, 512]]";
  const Answer slower = job(3 * ms, kSmall, kSmall);
  const Finding* found = find(slower, "straggler_hardware");
  REQUIRE(found != nullptr);
  CHECK(found->where.rank == 1);
  CHECK(found->confidence == "medium");  // nothing was sampled
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(3.35 / 2.35).epsilon(0.03));
  CHECK(find(job(2 * ms, kSmall, kSmall), "straggler_hardware") == nullptr);
  const Answer more = job(3 * ms, kSmall, kLarge);
  CHECK(find(more, "straggler_hardware") == nullptr);
  REQUIRE(find(more, "straggler_data") != nullptr);
  CHECK(find(more, "straggler_data")->where.rank == 1);
}

TEST_CASE("advice: a rank that always has far more is steady, however much it differs from step to step") {
  const auto job = [](std::array<std::int64_t, 5> more, bool one_job = true) {
    Run run;
    if (!one_job) run.issues.push_back({.code = std::string(kUnrelatedFiles)});
    for (int rank = 0; rank < 2; rank++) {
      Thread thread;
      for (const std::int64_t longer_ns : more) {
        thread.begin_step();
        thread.op("aten::mm", 10 * ms + (rank == 1 ? longer_ns : 0), {},
                  {.dims = rank == 1 ? "[[1024, 512], [512, 512]]" : "[[512, 512], [512, 512]]"});
        thread.end_step();
      }
      thread.f.trace.rank.rank = rank;
      run.traces.push_back(std::move(thread.f.trace));
      REQUIRE(derive::derive(run.traces.back(), {}));
    }
    derive::derive_run(run, 1);
    return advice_of(run);
  };
  const Answer answer = job({6 * ms, 14 * ms, 13 * ms, 6 * ms, 24 * ms});
  const Finding* found = find(answer, "straggler_data");
  REQUIRE(found != nullptr);
  CHECK(found->where.rank == 1);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low < found->gain->speedup_high);
  CHECK(find(job({4 * ms, 14 * ms, 13 * ms, 4 * ms, 24 * ms}), "straggler_data") == nullptr);
  CHECK(find(job({6 * ms, 14 * ms, 13 * ms, 6 * ms, 24 * ms}, false), "straggler_data") == nullptr);
}

}  // namespace
}  // namespace rank_causes
}  // namespace stepscope::diagnose
