// ranks and collectives on ranks made by hand: who is named, who is not, and what bandwidth is made of.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"
#include "derive/derive_run.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

using answer_fixture::ask;

constexpr std::int64_t kMs = 1'000'000;

struct Job {
  int ranks = 4, steps = 6;
  int late_rank = -1;
  std::int64_t late_ns = 2 * kMs;  // its data loader takes as much longer
  int shifted_rank = -1;
  std::int64_t shift_ns = 5 * kMs;
  bool numbered = true;
  std::int64_t world_size = 4;

  Run make() const {
    Run run;
    for (int rank = 0; rank < ranks; rank++) {
      const std::int64_t shift = rank == shifted_rank ? shift_ns : 0;
      TraceFixture f;
      f.trace.rank.rank = rank;
      f.trace.rank.world_size = world_size;
      const TrackId cpu = f.host("1"), stream = f.stream("20");
      for (int step = 0; step < steps; step++) {
        // 10 ms a step: data loader, compute, and 1 ms of transfer that begins when the late rank has come
        const std::int64_t at = kMs * 1000 + step * 10 * kMs + step * step * 1000 + shift;
        const std::int64_t late = rank == late_rank ? late_ns : 0;
        const std::int64_t arrival = at + 4 * kMs + late + rank * 1000;
        const std::int64_t last = at + 4 * kMs + (late_rank < 0 ? (ranks - 1) * 1000 : late_ns + late_rank * 1000);
        f.annotation(cpu, "ProfilerStep#" + std::to_string(step + 3), at, 9 * kMs);
        f.annotation(cpu, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1000, kMs + late);
        f.launch(cpu, "cudaLaunchKernel", arrival - 20'000, 5000, 100 + step);
        const SliceId kernel =
            f.kernel(stream, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", arrival, last + kMs - arrival, 100 + step);
        f.collective(kernel, "allreduce", 1'000'000, world_size, "BFloat16");
        if (numbered) f.trace.collectives.sequence.set(step, step);
      }
      REQUIRE(derive::derive(f.trace, {}));
      run.traces.push_back(std::move(f.trace));
    }
    derive::derive_run(run, 1);
    return run;
  }
};

Value cell(const Table& table, std::size_t row, std::string_view column) {
  for (std::size_t i = 0; i < table.columns.size(); i++) {
    if (table.columns[i].name == column) return table.rows.at(row).at(i);
  }
  FAIL("no column " << column);
  return {};
}

TEST_CASE("ranks: the rank with the slow data loader is named, with the phase") {
  const Answer answer = ask(Job{.late_rank = 2}.make(), "ranks");
  REQUIRE_EQ(answer.findings.size(), 1);
  const Finding& finding = answer.findings[0];
  CHECK_EQ(finding.id, "straggler");
  CHECK_EQ(finding.where.rank, 2);
  CHECK_EQ(finding.where.phase, "dataloader");
  // 2 ms and 1 us (its place among the ranks) more than the median rank, six times
  const auto total = std::get<std::int64_t>(finding.evidence[0].value);
  CHECK(std::abs(total - 6 * 2'001'000) <= 6 * 2'000);
  CHECK_EQ(cell(*answer.table("ranks"), 0, "rank"), Value(std::int64_t{2}));
}

// Marks of 60 steps: rank 2 takes so much longer in each than the others.
void mark_steps(Run& run, std::int64_t longer_ns) {
  for (const Trace& trace : run.traces) {
    TraceFixture f;
    f.trace.rank.rank = trace.rank.rank;
    const TrackId lane = f.host("1");
    std::int64_t at = kMs * 1'000'000;
    for (int step = 0; step < 60; step++) {
      const std::int64_t took = 10 * kMs + (trace.rank.rank == 2 ? longer_ns : 0);
      f.slice(lane, "user_annotation", "forward", at, 4 * kMs);
      f.trace.slices.phase.push_back(static_cast<std::uint8_t>(Phase::forward));
      f.trace.steps.push_back({.name = "step", .number = step, .start_ns = at, .end_ns = at + took});
      at += took;
    }
    run.history.push_back(std::move(f.trace));
  }
}

TEST_CASE("ranks: a rank that is late in the recorded steps alone is late by chance") {
  for (const bool always : {true, false}) {
    CAPTURE(always);
    Run run = Job{.late_rank = 2}.make();
    mark_steps(run, always ? 2 * kMs : 0);
    const Answer answer = ask(run, "ranks");
    REQUIRE_EQ(answer.findings.size(), 1);
    CHECK_EQ(answer.findings[0].id, always ? "straggler" : "uneven_ranks");
    CHECK_EQ(answer.findings[0].where.rank, 2);
    CHECK_EQ(answer.findings[0].changes.empty(), !always);
  }
}

TEST_CASE("ranks: a shifted clock makes no straggler") {
  for (const std::int64_t shift : {5 * kMs, 5000 * kMs, -900 * kMs}) {
    for (const bool numbered : {true, false}) {
      const Answer answer = ask(Job{.shifted_rank = 1, .shift_ns = shift, .numbered = numbered}.make(), "ranks");
      CAPTURE(shift);
      CAPTURE(numbered);
      CHECK(answer.findings.empty());
      REQUIRE_EQ(answer.notes.size(), 1);
      CHECK_NE(answer.notes[0].find("No rank comes late"), std::string::npos);
    }
  }
  const Answer both = ask(Job{.late_rank = 2, .shifted_rank = 1, .shift_ns = 5000 * kMs}.make(), "ranks");
  REQUIRE_EQ(both.findings.size(), 1);
  CHECK_EQ(both.findings[0].where.rank, 2);
}

TEST_CASE("ranks: without clocks from collectives nobody is blamed") {
  const Answer answer = ask(Job{.steps = 2, .late_rank = 2}.make(), "ranks");
  CHECK(answer.findings.empty());
  CHECK_NE(answer.notes.front().find("cannot be told"), std::string::npos);
  CHECK(std::holds_alternative<std::monostate>(cell(*answer.table("ranks"), 0, "late_ns")));
}

TEST_CASE("ranks: missing ranks are listed and the rest is compared") {
  const Answer answer = ask(Job{.late_rank = 2, .world_size = 64}.make(), "ranks");
  const Table* missing = answer.table("missing");
  REQUIRE_NE(missing, nullptr);
  REQUIRE_EQ(missing->rows.size(), 1);
  CHECK_EQ(cell(*missing, 0, "first"), Value(std::int64_t{4}));
  CHECK_EQ(cell(*missing, 0, "count"), Value(std::int64_t{60}));
  CHECK_EQ(answer.findings.size(), 1);
}

TEST_CASE("collectives: transfer is what the last rank took, waiting is the rest, bandwidth is in decimal GB/s") {
  const Answer answer = ask(Job{.late_rank = 2}.make(), "collectives");
  const Table& table = *answer.table("collectives");
  REQUIRE_EQ(table.rows.size(), 1);
  CHECK_EQ(cell(table, 0, "complete"), Value(std::int64_t{6}));
  CHECK_EQ(cell(table, 0, "transfer_ns"), Value(kMs));
  CHECK_EQ(cell(table, 0, "bytes"), Value(std::int64_t{2'000'000}));
  CHECK_EQ(std::get<double>(cell(table, 0, "algorithm_gb_per_s")), doctest::Approx(2.0));
  CHECK_EQ(std::get<double>(cell(table, 0, "bus_gb_per_s")), doctest::Approx(3.0));
  CHECK_EQ(cell(table, 0, "bandwidth_is"), Value(std::string("transfer")));
  CHECK_EQ(cell(table, 0, "matched_by"), Value(std::string("sequence number")));
}

TEST_CASE("collectives: with a rank missing the bandwidth is a lower bound and says so") {
  const Answer answer = ask(Job{.ranks = 3, .late_rank = 2}.make(), "collectives");
  const Table& table = *answer.table("collectives");
  CHECK_EQ(cell(table, 0, "complete"), Value(std::int64_t{0}));
  CHECK_EQ(cell(table, 0, "bandwidth_is"), Value(std::string("lower bound")));
}

}  // namespace
}  // namespace stepscope
