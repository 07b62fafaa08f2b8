// nsys exports of real trainings, to the nanosecond: sums and unions were measured on the same files with plain SQL.
// Needs the corpus ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without it.
#include <doctest/doctest.h>

#include <map>

#include "base/intervals.h"
#include "model/windows.h"
#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

Run open_fixture(std::string_view name) { return opened(corpus() / "nsys" / name); }

struct Kernels {
  std::size_t count = 0;
  Ns sum = 0, busy = 0, span = 0;
};

Kernels kernels_of(const Trace& trace, std::string_view name = "") {
  Kernels out;
  std::vector<Interval> all;
  for (const SliceId slice : trace.device.slice.span()) {
    if (trace.kind(slice) != SliceKind::kernel || trace.name(slice).find(name) == std::string_view::npos) continue;
    all.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    out.count++;
    out.sum += trace.slices.dur_ns[slice];
  }
  const Intervals set = make_intervals(std::move(all));
  out.busy = length(set);
  if (!set.empty()) out.span = set.back().end - set.front().start;
  return out;
}

void check(const Kernels& kernels, std::size_t count, Ns sum, Ns busy, Ns span) {
  CHECK(kernels.count == count);
  CHECK(kernels.sum == sum);
  CHECK(kernels.busy == busy);
  CHECK(kernels.span == span);
}

}  // namespace

TEST_CASE("real nsys: two H100, one second: kernels, copies and what lies outside the cut") {
  if (!has_corpus()) return;
  const Run run = open_fixture("h100_2gpu_1s.sqlite");
  REQUIRE(run.traces.size() == 2);
  check(kernels_of(run.traces[0]), 1721, 22'385'163, 22'385'163, 960'485'009);
  check(kernels_of(run.traces[1]), 1721, 22'444'359, 22'444'359, 960'307'663);
  const RankTime first = rank_time(run.traces[0]);
  REQUIRE(first.devices.size() == 1);
  Ns bytes = 0, count = 0;
  std::vector<Interval> copies;
  const Trace& trace = run.traces[0];
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId slice = trace.device.slice[row];
    if (!trace.name(slice).starts_with("Memcpy HtoD")) continue;
    copies.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    bytes += trace.device.bytes[row];
    count++;
  }
  CHECK(count == 225);
  CHECK(bytes == 25'475'253'792);
  CHECK(length(make_intervals(std::move(copies))) == 920'872'841);
  std::size_t ops = 0;
  std::uint64_t linked = 0, unlinked = 0;
  for (const Trace& each : run.traces) {
    ops += each.ops.size();
    linked += each.links.device_linked;
    unlinked += each.links.device_unlinked;
  }
  CHECK(ops == 16'782);
  CHECK(linked + unlinked == 3442 + 904 + 22);
  CHECK(unlinked > 0);  // the file was cut to a window: orphans are normal and no issue
  for (const Trace& each : run.traces) {
    for (const Issue& issue : each.issues) CHECK_MESSAGE(issue.severity != Severity::lost, issue.sentence);
  }
}

TEST_CASE("real nsys: a training before and after a change") {
  if (!has_corpus()) return;
  const Run before = open_fixture("mfu_2gpu_before.sqlite"), after = open_fixture("mfu_2gpu_after.sqlite");
  REQUIRE(before.traces.size() == 2);
  REQUIRE(after.traces.size() == 2);
  check(kernels_of(before.traces[0]), 1993, 270'875'926, 270'863'484, 299'848'812);
  check(kernels_of(before.traces[1]), 2017, 264'324'724, 264'324'724, 298'661'551);
  check(kernels_of(after.traces[0]), 1793, 237'473'368, 237'473'368, 299'219'791);
  check(kernels_of(after.traces[1]), 1794, 251'362'038, 251'362'038, 299'238'478);
  const auto nccl = [](const Trace& trace) { return kernels_of(trace, "SendRecv").sum; };
  CHECK(nccl(before.traces[0]) == 17'172'652);
  CHECK(nccl(before.traces[1]) == 8'229'100);
  CHECK(nccl(before.traces[0]) + nccl(before.traces[1]) == 25'401'752);
  CHECK(nccl(after.traces[0]) + nccl(after.traces[1]) == 33'742'101);
  CHECK(kernels_of(before.traces[0]).sum + kernels_of(before.traces[1]).sum == 535'200'650);
  CHECK(kernels_of(after.traces[0]).sum + kernels_of(after.traces[1]).sum == 488'835'406);
  // NCCL shares the compute stream: nothing of it is hidden
  const RankTime rank = rank_time(before.traces[0]);
  const DeviceTime& device = rank.devices.front();
  CHECK(length(device.of(DeviceClass::communication)) == 17'172'652);
  CHECK(shared_length(device.of(DeviceClass::communication), device.of(DeviceClass::compute)) == 0);
}

TEST_CASE("real nsys: the parts of the span add up, and one verdict names the largest") {
  if (!has_corpus()) return;
  const std::map<std::string, std::string> verdicts{{"h100_2gpu_1s.sqlite", "copy_bound"},
                                                    {"mfu_2gpu_before.sqlite", "compute_bound"},
                                                    {"mfu_2gpu_after.sqlite", "compute_bound"}};
  for (const auto& [file, verdict] : verdicts) {
    const std::string& name = file;  // a macro cannot take a structured binding
    CAPTURE(name);
    const Run run = open_fixture(name);
    const std::string asked = "overview";
    const Result<Report> report = session::answer(run, std::span(&asked, 1));
    REQUIRE(report);
    const Answer& overview = report->answers.front();
    std::map<Ns, Ns> parts;  // by rank
    for (const auto& row : overview.table("breakdown")->rows) parts[std::get<Ns>(row[0])] += std::get<Ns>(row[3]);
    for (const Trace& trace : run.traces) {
      const RankTime rank = rank_time(trace);
      REQUIRE(rank.devices.size() == 1);
      CHECK(parts[rank.rank] == rank.devices[0].span.end - rank.devices[0].span.start);
    }
    REQUIRE(overview.findings.size() == 1);
    CHECK(overview.findings[0].id == verdict);
  }
}

TEST_CASE("real nsys: host-to-device copies fill the second of the two H100") {
  if (!has_corpus()) return;
  const Run run = open_fixture("h100_2gpu_1s.sqlite");
  const std::string asked = "overview";
  const Result<Report> report = session::answer(run, std::span(&asked, 1));
  REQUIRE(report);
  const Finding& finding = report->answers.front().findings.at(0);
  CHECK(finding.sentence == "Host-to-device copies are the largest part of the device's span");
  REQUIRE(finding.evidence.size() == 4);
  // of the span of all device work; over that of the kernels alone, which the copies reach beyond, it would be 95.9 %
  CHECK(std::get<double>(finding.evidence[0].value) == doctest::Approx(0.94992).epsilon(0.0001));
  CHECK(std::get<Ns>(finding.evidence[1].value) == 920'872'841 + 920'757'957);
  CHECK(std::get<Ns>(finding.evidence[2].value) == 2 * 25'475'253'792);
  CHECK(std::get<double>(finding.evidence[3].value) == doctest::Approx(27.66).epsilon(0.001));
  const auto& device = report->answers.front().table("devices")->rows.at(0);
  CHECK(std::get<Ns>(device[5]) == 969'447'605);  // with copies; of kernels alone:
  CHECK(std::get<Ns>(device[7]) == 22'385'163);
  CHECK(std::get<Ns>(device[9]) == 960'485'009);
}

TEST_CASE("real nsys: small exports of other tools open whole") {
  if (!has_corpus()) return;
  const Run mock = open_fixture("mock.sqlite");
  REQUIRE(mock.traces.size() == 1);
  CHECK(mock.traces[0].device.size() == 4);
  REQUIRE(mock.traces[0].devices.size() == 1);
  CHECK(mock.traces[0].devices[0].name == "NVIDIA GeForce RTX 3080");
  CHECK(mock.traces[0].devices[0].sm_count == 68);
  const Run healthy = open_fixture("healthy_1pct.sqlite");  // kernels do not say their process there
  REQUIRE(healthy.traces.size() == 1);
  CHECK(healthy.traces[0].links.device_linked == 400);
}

}  // namespace stepscope
