// The verdict of the overview: parts that add up, and the largest of them with its evidence.
#include "analyze/overview/verdict.h"

#include "analyze/answer_fixture.h"

using namespace stepscope;
using namespace stepscope::answer_fixture;

namespace {

// 100 ns of one device: `copy_ns` of a copy first, `compute_ns` of a kernel at the end.
Run recording(std::string_view copy, Ns copy_ns, Ns compute_ns, Ns bytes = kAbsent) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 100);
  if (copy_ns > 0) {
    f.device(gpu, "gpu_memcpy", copy, 0, copy_ns);
    f.trace.device.bytes.set(f.trace.device.size() - 1, bytes);
  } else {
    f.kernel(gpu, "sgemm", 0, 1);
  }
  f.kernel(gpu, "sgemm", 100 - compute_ns, compute_ns);
  return run_of(std::move(f));
}

Finding verdict_of(const Run& run) {
  const auto finding = analyze::overview::verdict(rank_times(run), false);
  REQUIRE(finding);
  CHECK_FALSE(finding->next->empty());
  return *finding;
}

}  // namespace

TEST_CASE("verdict: copies are named by direction, with bytes and speed") {
  const Finding pinned = verdict_of(recording("Memcpy HtoD (Pinned -> Device)", 90, 10, 1800));
  CHECK(pinned.id == "copy_bound");
  CHECK(pinned.sentence == "Host-to-device copies are the largest part of the device's span");
  REQUIRE(pinned.evidence.size() == 4);
  CHECK(std::get<double>(pinned.evidence[0].value) == doctest::Approx(0.9));
  CHECK(std::get<Ns>(pinned.evidence[1].value) == 90);
  CHECK(std::get<Ns>(pinned.evidence[2].value) == 1800);
  CHECK(std::get<double>(pinned.evidence[3].value) == doctest::Approx(20));
  CHECK(pinned.next->find("pinned already") != std::string::npos);

  const Finding pageable = verdict_of(recording("Memcpy HtoD (Pageable -> Device)", 90, 10));
  CHECK(pageable.evidence.size() == 2);  // no bytes were recorded: no speed is made up
  CHECK(pageable.next->find("pin_memory=True") != std::string::npos);
  CHECK(verdict_of(recording("Memcpy DtoD (Device -> Device)", 90, 10)).sentence.starts_with("Copies within"));
}

TEST_CASE("verdict: the largest part decides, idle time counts as one") {
  CHECK(verdict_of(recording("Memcpy HtoD (Pinned -> Device)", 30, 60)).id == "compute_bound");
  const Finding idle = verdict_of(recording("", 0, 10));
  CHECK(idle.id == "idle_bound");
  CHECK(std::get<double>(idle.evidence[0].value) == doctest::Approx(0.89));
  CHECK(idle.evidence[1].text.starts_with("Of it "));
  TraceFixture empty;
  empty.op(empty.host("1"), "aten::mm", 0, 100);
  CHECK_FALSE(analyze::overview::verdict(rank_times(run_of(std::move(empty))), false));
}

TEST_CASE("verdict: its parts are those of the window, to the nanosecond") {
  const Run run = recording("Memcpy HtoD (Pinned -> Device)", 30, 60);
  const RankTime rank = rank_time(run.traces[0]);
  Ns sum = 0;
  for (const auto& [name, part] :
       analyze::overview::device_parts(run.traces[0], rank.devices[0], make_intervals({rank.devices[0].span}))) {
    sum += part;
  }
  CHECK(sum == 100);
}
