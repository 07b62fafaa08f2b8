// Telemetry as counter tracks: what was sampled comes back from the files, where and when it was.
#include "write/telemetry.h"

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "base/temp_fixture.h"
#include "derive/derive.h"
#include "model/trace_fixture.h"
#include "write/write_fixture.h"

namespace stepscope::write {
namespace {

using namespace corpus_fixture;

constexpr Ns kMs = 1'000'000, kUnix = 1'795'437'296'000'000'000;

// A rank that works from 1 s to 2 s on its clock, which counts from `base_ns`.
Trace rank_trace(std::int64_t rank, Ns base_ns) {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 1000 * kMs, 1000 * kMs);
  f.trace.rank.rank = rank;
  f.trace.rank.world_size = 2;
  f.trace.rank.source = RankSource::distributed_info;
  f.trace.clock_base_ns = base_ns;
  REQUIRE(derive::derive(f.trace, {}));
  return std::move(f.trace);
}

// Every 400 ms from kUnix on for 4 s: the levels 0, 10, 20 …; as a counter the rates 1, 2, 3 …
void add_series(Trace& sampler, const char* host, const char* name, const char* target, bool is_counter,
                std::optional<std::int64_t> rank) {
  const auto number = static_cast<std::uint32_t>(sampler.sampled.size());
  sampler.sampled.push_back({host, "made", name, target, "bytes", "bytes/s", "", is_counter, rank});
  for (int i = 0; i <= 10; i++) {
    sampler.samples.series.push_back(number);
    sampler.samples.time_ns.push_back(kUnix + i * 400 * kMs);
    sampler.samples.value.push_back(10 * i);
    sampler.samples.rate.push_back(is_counter && i > 0 ? i : std::nan(""));
  }
}

using Row =
    std::tuple<std::string, std::string, std::string, Ns, double>;  // process, name, key, ms on its clock, value

std::vector<Row> counters_of(const Trace& trace) {
  std::vector<Row> rows;
  const Counters& counters = trace.counters;
  for (std::size_t i = 0; i < counters.size(); i++) {
    const Track& track = trace.tracks[static_cast<std::size_t>(counters.track[i])];
    rows.push_back({std::string(trace.strings[track.process]), std::string(trace.strings[counters.name[i]]),
                    std::string(trace.strings[counters.key[i]]), counters.time_ns[i] / kMs, counters.value[i]});
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// What stands beside the counters is where it was.
void check_slices(const Run& a, const Run& b) {
  REQUIRE(a.traces.size() == b.traces.size());
  for (std::size_t i = 0; i < a.traces.size(); i++) {
    REQUIRE(b.traces[i].slices.size() == 1);
    CHECK(b.traces[i].slices.start_ns[0] == a.traces[i].slices.start_ns[0]);
    CHECK(b.traces[i].clock_base_ns == a.traces[i].clock_base_ns);
    CHECK(b.traces[i].rank.rank == a.traces[i].rank.rank);
    CHECK(b.traces[i].issues.empty());
  }
}

TEST_CASE("write: telemetry goes to the process of its rank and to its machine, of the time that was recorded") {
  Run run;
  run.traces.push_back(rank_trace(0, kUnix));
  Trace& sampler = run.telemetry.emplace_back();
  add_series(sampler, "node1", "read", "rank 0", true, 0);
  add_series(sampler, "node1", "memory_free", "host", false, std::nullopt);
  add_series(sampler, "node1", "received", "eth0", true, std::nullopt);
  add_series(sampler, "node1", "rss", "rank 7", false, 7);  // of which there is no trace
  CHECK(add_telemetry(run) == "");
  // 1 s to 2 s: samples at 1200, 1600 and 2000 ms, one before and one after; a rate held since the sample before.
  const auto gauge = [](const char* name) {
    std::vector<Row> rows;
    for (int i = 2; i <= 6; i++) rows.push_back({"machine node1", name, "bytes", i * 400, 10 * i});
    return rows;
  };
  const auto counter = [](const char* process, const char* name) {
    std::vector<Row> rows;
    for (int i = 2; i <= 5; i++) rows.push_back({process, name, "bytes/s", i * 400, i + 1});
    return rows;
  };
  std::vector<Row> expected;
  for (const auto& rows :
       {counter("100", "read"), gauge("memory_free"), counter("machine node1", "eth0 received"), gauge("rank 7 rss")}) {
    expected.insert(expected.end(), rows.begin(), rows.end());
  }
  std::sort(expected.begin(), expected.end());
  CHECK(counters_of(run.traces[0]) == expected);
  const TempFolder folder;
  for (const auto& [written, file] : {std::pair{"chrome", "out.json.gz"}, std::pair{"perfetto", "out.pftrace"}}) {
    const std::string format = written, name = file;
    CAPTURE(format);
    REQUIRE(writer(format).write(run, folder / name, {}));
    const Run back = opened(folder / name);
    check_slices(run, back);
    CHECK(counters_of(back.traces[0]) == expected);
  }
}

TEST_CASE("write: telemetry of several ranks and machines in one file") {
  Run run;
  run.traces.push_back(rank_trace(0, kUnix));
  run.traces.push_back(rank_trace(1, kUnix - 5'000 * kMs));
  run.traces[1].clock.offset_ns = -5'000 * kMs;
  run.traces[1].slices.start_ns[0] += 5'000 * kMs;
  for (const std::int64_t rank : {0, 1}) {
    const std::string host = "node" + std::to_string(rank), target = "rank " + std::to_string(rank);
    add_series(run.telemetry.emplace_back(), host.c_str(), "rss", target.c_str(), false, rank);
    add_series(run.telemetry.back(), host.c_str(), "memory_free", "host", false, std::nullopt);
  }
  CHECK(add_telemetry(run) == "");
  for (std::size_t i = 0; i < 2; i++) {
    const auto rows = counters_of(run.traces[i]);
    REQUIRE(rows.size() == 10);
    CHECK(rows.front() == Row{"100", "rss", "bytes", 800 + (i == 1 ? 5000 : 0), 20.0});
    CHECK(std::get<0>(rows.back()) == "machine node" + std::to_string(i));
  }
  const TempFolder folder;
  for (const auto& [written, file] : {std::pair{"chrome", "out.json"}, std::pair{"perfetto", "out.pftrace"}}) {
    const std::string format = written, name = file;
    CAPTURE(format);
    REQUIRE(writer(format).write(run, folder / name, {}));
    const std::string text = whole_file(folder / name);  // a machine belongs to no rank
    CHECK(text.find("rank 0 / ") != text.npos);
    CHECK(text.find("machine node1") != text.npos);
    CHECK(text.find("/ machine") == text.npos);
    const Run back = opened(folder / name);
    check_slices(run, back);
    for (std::size_t i = 0; i < 2; i++) CHECK(counters_of(back.traces[i]) == counters_of(run.traces[i]));
  }
}

TEST_CASE("write: telemetry beside a trace that does not say when it was recorded is left out, and told") {
  Run run;
  run.path = "folder";
  run.traces.push_back(rank_trace(0, kAbsent));
  add_series(run.telemetry.emplace_back(), "node1", "rss", "rank 0", false, 0);
  add_series(run.telemetry.back(), "node1", "memory_free", "host", false, std::nullopt);
  const std::string told = add_telemetry(run);
  CHECK(told.starts_with("2 of 2 series"));
  CHECK(told.find("report --only system folder") != told.npos);
  CHECK(run.traces[0].counters.size() == 0);
}

}  // namespace
}  // namespace stepscope::write
