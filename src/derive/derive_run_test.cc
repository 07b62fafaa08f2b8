// Clocks and matches of ranks that were made by hand: the same collectives on every rank, each with its own clock, its
// own lateness and its own lost records. The truth is the n-th collective of the maker.
#include "derive/derive_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "model/trace_fixture.h"

namespace stepscope {
namespace {

struct Maker {
  int ranks = 4, collectives = 400;
  double lost = 0;           // share of records lost on each rank
  double noise_ns = 10'000;  // of the ends
  bool metadata = true, numbered = false;
  std::vector<std::int64_t> shift_ns;  // per rank
  double drift = 0;                    // of the last rank
  unsigned seed = 1;

  std::map<std::pair<std::uint32_t, std::uint32_t>, int> truth{};  // (trace, device row) → which collective

  Run make() {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, noise_ns);
    std::uniform_real_distribution<double> any(0, 1);
    std::vector<std::int64_t> ends;
    std::vector<int> sizes;
    std::int64_t now = 5'000'000'000;
    for (int i = 0; i < collectives; i++) {
      const bool new_step = i % 40 == 0;
      now += 150'000 + static_cast<std::int64_t>(any(random) * 200'000) + (new_step ? 3'000'000 : 0);
      ends.push_back(now);
      sizes.push_back(i % 40 < 30 ? 1024 : 4096);  // long runs of calls that look alike
    }
    Run run;
    for (int rank = 0; rank < ranks; rank++) {
      TraceFixture f;
      f.trace.rank.rank = rank;
      const TrackId stream = f.stream("20");
      std::uint32_t rows = 0;
      for (int i = 0; i < collectives; i++) {
        const std::int64_t late = static_cast<std::int64_t>(any(random) * 100'000);
        const auto end = ends[i] + static_cast<std::int64_t>(noise(random));
        if (any(random) < lost) continue;
        const auto clock = [&](std::int64_t t) {
          const double tilt = rank == ranks - 1 ? drift * static_cast<double>(t - ends[0]) : 0;
          return t + (shift_ns.empty() ? 0 : shift_ns[rank]) + static_cast<std::int64_t>(tilt);
        };
        const std::int64_t start = clock(ends[i] - 130'000 + late);
        const SliceId id = f.kernel(stream, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", start,
                                    std::max<std::int64_t>(clock(end) - start, 0));
        if (metadata) f.collective(id, "allreduce", sizes[i], ranks);
        if (metadata && numbered) f.trace.collectives.sequence.set(rows, i + 7);
        truth[{static_cast<std::uint32_t>(rank), rows++}] = i;
      }
      DeviceRows& device = f.trace.device;
      device.device_class.resize(device.size(), static_cast<std::uint8_t>(DeviceClass::communication));
      device.op.resize(device.size(), SliceId::none);
      run.traces.push_back(std::move(f.trace));
    }
    derive::derive_run(run, 2);
    return run;
  }
};

struct Score {
  double precision = 0, recall = 0;
};

// Over pairs of calls on two ranks: which were matched, and which should have been.
Score score(const Maker& maker, const Run& run) {
  std::map<int, std::int64_t> ranks_of;
  for (const auto& [row, which] : maker.truth) ranks_of[which]++;
  double wanted = 0, made = 0, right = 0;
  for (const auto& [which, ranks] : ranks_of) wanted += static_cast<double>(ranks * (ranks - 1)) / 2;
  for (std::size_t match = 0; match < run.matches.size(); match++) {
    const auto members = run.matches.of(match);
    for (std::size_t a = 0; a < members.size(); a++) {
      for (std::size_t b = a + 1; b < members.size(); b++) {
        made++;
        const int first = maker.truth.at({members[a].trace, members[a].device_row});
        if (first == maker.truth.at({members[b].trace, members[b].device_row})) right++;
      }
    }
  }
  return {made > 0 ? right / made : 0, right / wanted};
}

std::size_t member_count(const Run& run) { return run.matches.members.size(); }

TEST_CASE("derive_run: every call is a member of one match, whatever was lost") {
  Maker maker{.lost = 0.05};
  const Run run = maker.make();
  CHECK(member_count(run) == maker.truth.size());
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const MatchMember& member : run.matches.members) CHECK(seen.insert({member.trace, member.device_row}).second);
}

TEST_CASE("derive_run: lost records leave holes and do not shift what follows") {
  for (const double lost : {0.0, 0.01, 0.03, 0.05}) {
    for (const bool metadata : {true, false}) {
      for (const bool numbered : {true, false}) {
        for (unsigned seed = 1; seed <= 5; seed++) {
          CAPTURE(lost);
          CAPTURE(metadata);
          CAPTURE(numbered);
          CAPTURE(seed);
          Maker maker{.lost = lost,
                      .metadata = metadata,
                      .numbered = numbered,
                      .shift_ns = {0, 5'000'000, -5'000'000'000, 1'000'000'000'000},
                      .drift = 1e-4,
                      .seed = seed};
          const Run run = maker.make();
          const Score found = score(maker, run);
          CHECK(found.precision >= 0.99);
          CHECK(found.recall >= 0.99);
        }
      }
    }
  }
}

TEST_CASE("derive_run: offsets and drift are recovered, and the bound is not smaller than the error") {
  for (const bool numbered : {true, false}) {
    Maker maker{
        .lost = 0.03, .numbered = numbered, .shift_ns = {0, 5'000'000, -5'000'000'000, 5'000'000'000}, .drift = 1e-4};
    const Run run = maker.make();
    for (const Trace& trace : run.traces) {
      CAPTURE(trace.rank.rank);
      if (trace.rank.rank > 0) CHECK(trace.clock.source == ClockSource::collectives);
    }
    double worst = 0;
    std::vector<std::int64_t> apart;
    for (std::size_t match = 0; match < run.matches.size(); match++) {
      for (const MatchMember& member : run.matches.of(match)) {
        const MatchMember& first = run.matches.of(match).front();
        apart.push_back(run_time_ns(run.traces[member.trace], member.end_ns) -
                        run_time_ns(run.traces[first.trace], first.end_ns));
      }
    }
    for (int rank = 1; rank < maker.ranks; rank++) {
      const TraceClock& clock = run.traces[rank].clock;
      const std::int64_t t = run.traces[rank].slices.start_ns[0];
      const std::int64_t last = run.traces[rank].slices.start_ns[run.traces[rank].slices.size() - 1];
      const double drift = rank == maker.ranks - 1 ? 1e-4 : 0;
      for (const std::int64_t when : {t, last}) {
        // what the maker did to the moment that this rank calls `when`
        const double true_time = static_cast<double>(when - maker.shift_ns[rank]);
        const double undone = drift * (true_time - 5'003'250'000.0);
        const double error = static_cast<double>(run_time_ns(run.traces[rank], when)) - (true_time - undone);
        worst = std::max(worst, std::abs(error));
      }
      CHECK(clock.bound_ns > 0);
    }
    CHECK(worst <= 50'000);
  }
}

TEST_CASE("derive_run: without shared collectives the wall clock counts, else the first event") {
  Maker maker{.ranks = 2, .collectives = 2};
  Run run = maker.make();
  CHECK(run.traces[1].clock.source == ClockSource::start);
  run.traces[0].clock_base_ns = 1'700'000'000'000'000'000;
  run.traces[1].clock_base_ns = 1'700'000'000'000'000'500;
  derive::derive_run(run, 1);
  CHECK(run.traces[1].clock.source == ClockSource::wall);
  CHECK(run_time_ns(run.traces[1], 10) == 510);
}

// Buckets of gloo as DDP sends them: two threads take them in turn and end when the scheduler lets them, up to 4 ms
// apart and often the second before the first.
struct Buckets {
  std::string host_of_second = "\"node\"";
  std::int64_t shift_ns = 0;                                      // of the second rank's clock
  std::map<std::pair<std::uint32_t, std::int64_t>, int> truth{};  // (trace, start) → which collective

  Run make() {
    std::mt19937 random(3);
    std::uniform_int_distribution<std::int64_t> late(0, 4'000'000), length(500'000, 3'000'000);
    Run run;
    for (std::uint32_t rank = 0; rank < 2; rank++) {
      run.traces.push_back({});
      run.traces.back().clock_base_ns = 1'700'000'000'000'000'000;
    }
    std::vector<TraceFixture> ranks(2);
    std::int64_t now = 1'000'000'000;
    for (int i = 0; i < 120; i += 2) {
      now += i % 10 == 0 ? 30'000'000 : 4'500'000;
      const std::int64_t work[2] = {length(random), length(random)};
      for (std::uint32_t rank = 0; rank < 2; rank++) {
        TraceFixture& f = ranks[rank];
        f.trace.rank.rank = rank;
        if (f.trace.tracks.empty()) f.host("11"), f.host("12");
        for (int thread = 0; thread < 2; thread++) {
          const int size = i + thread == 0 || i % 10 != 0 || thread == 1 ? 4096 : 1024;
          const std::int64_t start = now + thread * 20'000 + (rank == 1 ? shift_ns + 300'000 : 0);
          truth[{rank, start}] = i + thread;
          f.op(static_cast<TrackId>(thread), "gloo:all_reduce", start, work[thread] + 300'000 + late(random),
               {.dims = size == 4096 ? "[[4096]]" : "[[1024]]", .types = "[\"float\"]"}, "user_annotation");
        }
      }
    }
    for (std::uint32_t rank = 0; rank < 2; rank++) {
      ranks[rank].trace.clock_base_ns = 1'700'000'000'000'000'000;
      ranks[rank].trace.metadata.push_back({"host_name", rank == 0 ? "\"node\"" : host_of_second});
      run.traces[rank] = std::move(ranks[rank].trace);
    }
    derive::derive_run(run, 1);
    return run;
  }

  std::pair<int, int> right_and_wrong(const Run& run) const {
    int right = 0, wrong = 0;
    for (std::size_t match = 0; match < run.matches.size(); match++) {
      const auto members = run.matches.of(match);
      if (members.size() < 2) continue;
      const bool same =
          truth.at({members[0].trace, members[0].start_ns}) == truth.at({members[1].trace, members[1].start_ns});
      (same ? right : wrong)++;
    }
    return {right, wrong};
  }
};

TEST_CASE("derive_run: calls that threads of the host make are matched by size, in the order of their starts") {
  Buckets buckets;
  const Run run = buckets.make();
  CHECK(run.traces[1].clock.source == ClockSource::same_host);
  CHECK(run_time_ns(run.traces[1], 77) == 77);
  CHECK(buckets.right_and_wrong(run) == std::pair(120, 0));
  CHECK(run.matches.rows[0].bytes == 4 * 4096);
}

TEST_CASE("derive_run: the clock of a host is not taken for that of another") {
  for (const char* name : {"\"other\"", "\"localhost\"", "\"\""}) {
    Buckets buckets{.host_of_second = name};
    CHECK(buckets.make().traces[1].clock.source == ClockSource::collectives);
  }
  // one name for two machines whose clocks are minutes apart
  Buckets far{.shift_ns = 600'000'000'000};
  CHECK(far.make().traces[1].clock.source == ClockSource::collectives);
}

TEST_CASE("derive_run: a send and its receive are one match") {
  Run run;
  for (int rank = 0; rank < 3; rank++) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId stream = f.stream("20");
    for (int i = 0; i < 6; i++) {
      if (rank == 2 && i % 2 == 0) continue;
      const SliceId id = f.kernel(stream, "ncclDevKernel_SendRecv(x)", 1'000'000 * (i + 1) + rank * 10, 1000);
      // 0 sends to 1 and 2 in turn
      const int peer = rank == 0 ? 1 + i % 2 : 0;
      if (rank == 1 && i % 2 == 1) continue;  // kernel without metadata, alone
      f.collective(id, rank == 0 ? "send" : "recv", 64, 3);
      f.trace.collectives.peer.set(f.trace.collectives.size() - 1, peer);
    }
    f.trace.device.device_class.resize(f.trace.device.size(), static_cast<std::uint8_t>(DeviceClass::communication));
    f.trace.device.op.resize(f.trace.device.size(), SliceId::none);
    run.traces.push_back(std::move(f.trace));
  }
  derive::derive_run(run, 1);
  std::size_t pairs = 0;
  for (std::size_t match = 0; match < run.matches.size(); match++) {
    const auto members = run.matches.of(match);
    if (members.size() == 1) continue;
    pairs++;
    CHECK(run.matches.rows[match].kind == CollectiveKind::send);
    CHECK(members.size() == 2);
    CHECK(members[0].trace == 0);
  }
  CHECK(pairs == 6);
}

}  // namespace
}  // namespace stepscope
