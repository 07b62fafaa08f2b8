// Clocks and matches on real traces: two ranks of one recording, and single ranks copied to several with lateness,
// noise, other clocks and lost records put in. Skipped without the traces of other projects ($STEPSCOPE_CORPUS).
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>

#include "derive/derive_run.h"
#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

Run copies(const fs::path& path, int ranks) {
  Run run;
  for (int rank = 0; rank < ranks; rank++) {
    Run one = opened(path);
    one.traces.front().rank.rank = rank;
    run.traces.push_back(std::move(one.traces.front()));
  }
  return run;
}

// Another clock: t → t + shift + drift × (t − first).
void change_clock(Trace& trace, std::int64_t shift_ns, double drift) {
  const std::int64_t first = trace.slices.start_ns[0];
  const auto change = [&](std::int64_t t) {
    return t + shift_ns + std::llround(drift * static_cast<double>(t - first));
  };
  for (std::size_t i = 0; i < trace.slices.size(); i++) trace.slices.start_ns[i] = change(trace.slices.start_ns[i]);
  for (Step& step : trace.steps) step.start_ns = change(step.start_ns), step.end_ns = change(step.end_ns);
}

// Ends of kernels come a little earlier or later, and kernels are lost.
void disturb(Trace& trace, double noise_ns, double lost, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, noise_ns);
  std::uniform_real_distribution<double> any(0, 1);
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    if (trace.device.device_class[row] != static_cast<std::uint8_t>(DeviceClass::communication)) continue;
    const SliceId slice = trace.device.slice[row];
    const std::int64_t dur = trace.slices.dur_ns[slice];
    const auto longer = static_cast<std::int64_t>(noise(random));
    trace.slices.dur_ns.set(slice, std::max(dur / 2, dur + std::clamp(longer, -dur, dur)));
    if (any(random) < lost) trace.device.device_class[row] = static_cast<std::uint8_t>(DeviceClass::compute);
  }
}

bool is_communication(const Trace& trace, std::size_t row) {
  return trace.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::communication);
}

// Copies have the truth in them: the same row of the file.
std::pair<double, double> precision_and_recall(const Run& run) {
  double made = 0, right = 0, wanted = 0;
  for (std::size_t row = 0; row < run.traces.front().device.size(); row++) {
    double ranks = 0;
    for (const Trace& trace : run.traces) ranks += is_communication(trace, row) ? 1 : 0;
    wanted += ranks * (ranks - 1) / 2;
  }
  for (std::size_t match = 0; match < run.matches.size(); match++) {
    const auto members = run.matches.of(match);
    for (std::size_t a = 0; a < members.size(); a++) {
      for (std::size_t b = a + 1; b < members.size(); b++) {
        if (members[a].device_row == MatchMember::kNone || members[b].device_row == MatchMember::kNone) continue;
        made++;
        right += members[a].device_row == members[b].device_row ? 1 : 0;
      }
    }
  }
  return {made > 0 ? right / made : 0, wanted > 0 ? right / wanted : 0};
}

struct Sample {
  const char* path;
  bool long_enough_for_drift;
};
constexpr Sample kSamples[] = {{"hta/nccl_parser_config/nccl_data.json.gz", true},
                               {"hta/df_index_resolver/df_index_resolver.json.gz", true},
                               {"hta/negative_queue_length_values_check/rank0.json.gz", true},
                               {"hta/trace_diff/test/test.json.gz", true},
                               {"deepseek/train.json", true}};

TEST_CASE("run: copies of real ranks with 1 to 5 % of records lost are matched to 99 %") {
  if (!has_corpus()) return;
  for (const Sample& sample : kSamples) {
    for (const double lost : {0.01, 0.05}) {
      Run run = copies(corpus() / sample.path, 4);
      for (std::size_t i = 0; i < run.traces.size(); i++) {
        disturb(run.traces[i], 5'000, lost, static_cast<unsigned>(10 * i + 1));
        change_clock(run.traces[i], static_cast<std::int64_t>(i) * 5'000'000'000, i == 3 ? 1e-4 : 0);
      }
      derive::derive_run(run, 2);
      const auto [precision, recall] = precision_and_recall(run);
      CAPTURE(std::string(sample.path));
      CAPTURE(lost);
      CHECK(precision >= 0.99);
      CHECK(recall >= 0.99);
    }
  }
}

// How far the moment that `trace` calls `t` moved on the run's clock.
std::int64_t moved(const Trace& changed, const Trace& before, std::size_t slice) {
  return run_time_ns(changed, changed.slices.start_ns[slice]) - run_time_ns(before, before.slices.start_ns[slice]);
}

TEST_CASE("run: injected offsets and drift are recovered to 50 us on copies of real ranks") {
  if (!has_corpus()) return;
  for (const Sample& sample : kSamples) {
    for (const std::int64_t shift : {5'000'000LL, 5'000'000'000LL, -5'000'000'000LL}) {
      for (const double drift : {0.0, 1e-4}) {
        Run run = copies(corpus() / sample.path, 2), before = copies(corpus() / sample.path, 2);
        disturb(run.traces[1], 10'000, 0.02, 7);
        change_clock(run.traces[1], shift, drift);
        derive::derive_run(run, 2);
        derive::derive_run(before, 2);
        CAPTURE(std::string(sample.path));
        CAPTURE(shift);
        CAPTURE(drift);
        const Trace& trace = run.traces[1];
        REQUIRE(trace.clock.source == ClockSource::collectives);
        // between the first and the last collective; outside, a drift can only be continued
        std::int64_t worst = 0;
        for (std::size_t row = 0; row < trace.device.size(); row++) {
          if (!is_communication(trace, row)) continue;
          const auto slice = static_cast<std::size_t>(trace.device.slice[row]);
          worst = std::max(worst, std::abs(moved(trace, before.traces[1], slice)));
        }
        CHECK(worst <= 50'000);
      }
    }
  }
}

TEST_CASE("run: two real ranks, one shifted") {
  if (!has_corpus()) return;
  const fs::path folder = corpus() / "hta/trace_filter";
  const Run before = opened(folder);
  REQUIRE(before.traces.size() == 2);
  CHECK(before.traces[1].clock.source == ClockSource::collectives);
  CHECK(std::abs(before.traces[1].clock.offset_ns) <= 50'000);  // their hosts kept the same time
  for (const std::int64_t shift : {5'000'000LL, 5'000'000'000LL, -5'000'000'000LL}) {
    Run run = opened(folder);
    change_clock(run.traces[1], shift, 0);
    derive::derive_run(run, 2);
    CAPTURE(shift);
    CHECK(std::abs(moved(run.traces[1], before.traces[1], 0)) <= 50'000);
  }
}

// Of each collective that both ranks took part in: the rank that came last by more than the clocks may be wrong, or -1.
std::vector<std::int64_t> last_ranks(const Run& run) {
  std::vector<std::int64_t> last;
  for (std::size_t match = 0; match < run.matches.size(); match++) {
    std::array<std::int64_t, 2> start{INT64_MIN, INT64_MIN};
    for (const MatchMember& member : run.matches.of(match)) {
      if (member.device_row == MatchMember::kNone) continue;
      const Trace& trace = run.traces[member.trace];
      start[member.trace] = run_time_ns(trace, trace.slices.start_ns[trace.device.slice[member.device_row]]);
    }
    if (start[0] == INT64_MIN || start[1] == INT64_MIN) continue;
    last.push_back(std::abs(start[0] - start[1]) <= 50'000 ? -1 : start[1] > start[0] ? 1 : 0);
  }
  return last;
}

// A tool without clocks blames the shifted rank in every collective.
TEST_CASE("run: a shifted clock changes nothing about who comes last") {
  if (!has_corpus()) return;
  const auto check = [](const auto& make, std::size_t least) {
    Run before = make();
    derive::derive_run(before, 2);
    const std::vector<std::int64_t> truth = last_ranks(before);
    REQUIRE(truth.size() >= least);
    for (const std::int64_t shift : {5'000'000LL, -5'000'000LL, 5'000'000'000LL}) {
      Run run = make();
      change_clock(run.traces[1], shift, 0);
      derive::derive_run(run, 2);
      CAPTURE(shift);
      const std::vector<std::int64_t> found = last_ranks(run);
      REQUIRE(found.size() == truth.size());
      std::size_t different = 0;
      for (std::size_t i = 0; i < truth.size(); i++) different += found[i] == truth[i] ? 0 : 1;
      CHECK(different * 10 <= truth.size());
    }
  };
  check([] { return opened(corpus() / "hta/trace_filter"); }, 5);  // two real ranks share five
  for (const Sample& sample : kSamples) {
    CAPTURE(std::string(sample.path));
    check([&] { return copies(corpus() / sample.path, 2); }, 15);
  }
}

}  // namespace
}  // namespace stepscope
