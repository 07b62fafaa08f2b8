#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

void copy(TraceFixture& f, TrackId on, std::string_view name, Ns start, Ns duration, Ns bytes, Ns correlation = 0) {
  f.device(on, name.starts_with("Memset") ? "gpu_memset" : "gpu_memcpy", name, start, duration,
           correlation > 0 ? correlation : kAbsent);
  f.trace.device.bytes.set(f.trace.device.size() - 1, bytes);
}

TEST_CASE("copies: directions, bandwidth over time, hidden and exposed") {
  TraceFixture f;
  const TrackId compute = f.stream("7"), side = f.stream("8");
  f.kernel(compute, "sgemm", 0, 1'000);
  copy(f, side, "Memcpy HtoD (Pinned -> Device)", 500, 1'000, 10'000'000);   // half of it behind the kernel
  copy(f, side, "Memcpy HtoD (Pinned -> Device)", 2'000, 3'000, 2'000'000);  // exposed, slow
  copy(f, side, "Memcpy PtoP (Device -> Device)", 6'000, 100, 100);
  copy(f, side, "Memset (Device)", 7'000, 10, 64);
  f.device(side, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 8'000, 50);  // no bytes given
  const Answer answer = ask(run_of(std::move(f)), "copies");
  CHECK(ns(answer, "copy_count") == 5);
  CHECK(ns(answer, "exposed_ns") == 500 + 3'000 + 100 + 10 + 50);
  CHECK(ns(answer, "pageable_count") == 1);
  CHECK(cell(answer, "directions", "direction", "HtoD", "source") == Value(std::string("Pinned")));
  CHECK(cell(answer, "directions", "direction", "HtoD", "destination") == Value(std::string("Device")));
  // 12 MB in 4 µs, not the mean of 10,000 and 667 GB/s.
  CHECK(cell(answer, "directions", "direction", "HtoD", "gb_per_s") == Value(3'000.0));
  CHECK(cell(answer, "directions", "direction", "HtoD", "exposed_ns") == Value(Ns{3'500}));
  CHECK(cell(answer, "directions", "direction", "PtoP", "bytes") == Value(Ns{100}));
  CHECK(cell(answer, "directions", "direction", "set", "destination") == Value(std::string("Device")));
  CHECK(cell(answer, "directions", "direction", "DtoH", "bytes") == Value());
  CHECK(cell(answer, "directions", "direction", "DtoH", "gb_per_s") == Value());
  CHECK(answer.notes.size() == 1);  // that one copy has no bytes
}

TEST_CASE("copies: pageable copies that block the host are a finding with the operator") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.kernel(gpu, "sgemm", 0, 10'000);
  f.op(cpu, "aten::_local_scalar_dense", 0, 10'500);
  f.launch(cpu, "cudaMemcpyAsync", 100, 10'300, 1);
  copy(f, gpu, "Memcpy DtoH (Device -> Pageable)", 10'000, 100, 4, 1);
  const Answer answer = ask(run_of(std::move(f)), "copies");
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].id == "pageable_copies");
  CHECK(answer.findings[0].where.op == "aten::_local_scalar_dense");
  CHECK(cell(answer, "ops", "op", "aten::_local_scalar_dense", "host_ns") == Value(Ns{10'300}));
}

TEST_CASE("copies: many small ones are a finding, large ones are not") {
  for (const Ns bytes : {Ns{1'000}, Ns{10'000'000}}) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.stream("7");
    for (int i = 0; i < 200; i++) {
      f.op(cpu, "aten::copy_", i * 1'000, 900);
      f.launch(cpu, "cudaMemcpyAsync", i * 1'000, 500, i + 1);
      copy(f, gpu, "Memcpy DtoD (Device -> Device)", i * 1'000 + 600, 50, bytes, i + 1);
    }
    const Answer answer = ask(run_of(std::move(f)), "copies");
    CHECK(answer.findings.size() == (bytes == 1'000 ? 1 : 0));
  }
}

TEST_CASE("copies: a graph's launch is not the price of its copies") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.launch(cpu, "cudaGraphLaunch", 0, 5'000, 1);
  copy(f, gpu, "Memset (Device)", 100, 10, 64, 1);
  copy(f, gpu, "Memset (Device)", 200, 10, 64, 1);
  CHECK(cell(ask(run_of(std::move(f)), "copies"), "directions", "direction", "set", "host_ns") == Value(Ns{0}));
}

TEST_CASE("copies: a series of a copy gives its bytes back") {
  TraceFixture f;
  const TrackId gpu = f.stream("7");
  copy(f, gpu, "Memcpy HtoD (Pinned -> Device)", 0, 333, 4'000);
  copy(f, gpu, "Memcpy HtoD (Pinned -> Device)", 900, 100, 1'000);
  const Answer answer = ask(run_of(std::move(f)), "copies");
  REQUIRE(answer.series.size() == 1);
  const Series& series = answer.series[0];
  double bytes = 0;
  for (std::size_t i = 0; i < series.v.size(); i++) {
    bytes += series.v[i] * static_cast<double>((i + 1 < series.v.size() ? series.t_ns[i + 1] : 1'000) - series.t_ns[i]);
  }
  CHECK(bytes == doctest::Approx(5'000));
}

}  // namespace
}  // namespace stepscope
