// roofline on a device: whose time counts, which kernel has the work, what bounds it.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"
#include "report/report.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

constexpr std::string_view kPeaks =
    "Made-up GPU | 1000 | float32 1, bfloat16 10 | a test\n";  // a ns: 1000 bytes, 1000 FLOP

struct Gpu {
  TraceFixture f;
  TrackId cpu = f.host("1"), gpu = f.stream("7");
  Ns at = 0, correlation = 0;

  Gpu() { f.trace.devices.push_back({.id = 0, .name = "Made-up GPU"}); }
  // An operator that launches kernels of these durations.
  void op(std::string_view name, std::string_view dims, std::string_view types, std::vector<Ns> kernels,
          std::string_view concrete = {}, std::string_view kernel = "kernel") {
    f.op(cpu, name, at, 100, {.dims = dims, .types = types, .concrete = concrete});
    for (Ns launch = at + 1; const Ns length : kernels) {
      f.launch(cpu, "cudaLaunchKernel", launch++, 1, ++correlation);
      f.kernel(gpu, std::string(kernel) + std::to_string(correlation), at + 10, length, correlation);
      at += length;
    }
    at += 1000;
  }
  Answer answer() {
    Run run = run_of(std::move(f));
    run.peaks = {"mine.txt", std::string(kPeaks)};
    return ask(run, "roofline");
  }
};

constexpr std::string_view kTwo = R"(["float","float"])";

TEST_CASE("roofline: what a product takes at least is arithmetic, what an addition takes is memory") {
  Gpu g;
  g.op("aten::mm", "[[1000,1000],[1000,1000]]", kTwo, {4'000'000});  // 2 GFLOP: 2 ms; 12 MB: 12 us
  g.op("aten::add", "[[1000,1000],[1000,1000]]", kTwo, {24'000});    // 12 MB
  const Answer answer = g.answer();
  CHECK(cell(answer, "ops", "op", "aten::mm", "limit") == Value(std::string("compute")));
  CHECK(cell(answer, "ops", "op", "aten::mm", "attained_share") == Value(0.5));
  CHECK(cell(answer, "ops", "op", "aten::mm", "lost_ns") == Value(Ns{2'000'000}));
  CHECK(cell(answer, "ops", "op", "aten::add", "limit") == Value(std::string("memory")));
  CHECK(cell(answer, "ops", "op", "aten::add", "attained_share") == Value(0.5));
  CHECK(cell(answer, "ops", "op", "aten::add", "gb_per_s") == Value(500.0));
  CHECK(real(answer, "known_share") == 1);
  CHECK(ns(answer, "lost_ns") == 2'012'000);
  CHECK(answer.table("ops")->rows[0][1] == Value(std::string("aten::mm")));  // most time lost first
}

TEST_CASE("roofline: too little work, operands from a cache, and arithmetic faster than its peak") {
  Gpu g;
  g.op("aten::mul", "[[8],[8]]", kTwo, {5'000});
  g.op("aten::add", "[[1000,1000],[1000,1000]]", kTwo, {6'000});     // 12 us at least
  g.op("aten::mm", "[[1000,1000],[1000,1000]]", kTwo, {1'000'000});  // 2 ms at least
  const Answer answer = g.answer();
  CHECK(cell(answer, "ops", "op", "aten::mul", "limit") == Value(std::string("latency")));
  CHECK(cell(answer, "ops", "op", "aten::add", "limit") == Value(std::string("cache")));
  CHECK(cell(answer, "ops", "op", "aten::add", "attained_share") == Value());
  CHECK(cell(answer, "ops", "op", "aten::add", "lost_ns") == Value(Ns{0}));
  CHECK(cell(answer, "ops", "op", "aten::mm", "attained_share") == Value());
  REQUIRE(answer.notes.size() == 1);
  CHECK(answer.notes[0].find("1 call, such as of aten::mm") != std::string::npos);
}

TEST_CASE("roofline: the work of a call counts for its longest kernel") {
  Gpu g;
  g.op("aten::mm", "[[1000,1000],[1000,1000]]", kTwo, {100'000, 4'000'000, 50'000});
  const Answer answer = g.answer();
  CHECK(cell(answer, "ops", "op", "aten::mm", "time_ns") == Value(Ns{4'150'000}));
  CHECK(cell(answer, "kernels", "kernel", "kernel2", "flop") == Value(Ns{2'000'000'000}));
  CHECK(cell(answer, "kernels", "kernel", "kernel2", "attained_share") == Value(0.5));
  CHECK(cell(answer, "kernels", "kernel", "kernel1", "helper") == Value(true));
  CHECK(cell(answer, "kernels", "kernel", "kernel1", "flop") == Value());
}

TEST_CASE("roofline: lists of parameters have the type that the kernel's name says") {
  Gpu g;
  g.op("aten::_foreach_mul_", "[[[1000,1000]],[]]", R"(["TensorList",""])", {16'000}, {},
       "multi_tensor_apply_kernel<BinaryOpScalarFunctor<c10::BFloat16, 1, 1, 0>>");
  const Answer answer = g.answer();
  CHECK(cell(answer, "ops", "op", "aten::_foreach_mul_", "bytes") == Value(Ns{4'000'000}));
  CHECK(cell(answer, "ops", "op", "aten::_foreach_mul_", "attained_share") == Value(0.25));
}

TEST_CASE("roofline: time of what nobody knows stands beside, with the reason") {
  Gpu g;
  g.op("aten::mul", "[[1000,1000],[1000,1000]]", kTwo, {60'000});
  g.op("aten::add", "", "", {20'000});
  g.op("my::op", "[[8]]", R"(["float"])", {15'000});
  g.f.kernel(g.gpu, "orphan", g.at + 100, 5'000);
  const Answer answer = g.answer();
  CHECK(real(answer, "known_share") == doctest::Approx(0.6));
  CHECK(cell(answer, "unmodelled", "name", "aten::add", "why") == Value(std::string("no sizes")));
  CHECK(cell(answer, "unmodelled", "name", "my::op", "why") == Value(std::string("no model")));
  CHECK(cell(answer, "unmodelled", "name", "orphan", "why") == Value(std::string("no operator")));
  CHECK(cell(answer, "unmodelled", "name", "orphan", "share") == Value(0.05));
}

TEST_CASE("roofline: kernels of a range that says its work, and of products without sizes") {
  Gpu g;
  g.f.annotation(g.cpu, "mine [flop=1000000 bytes=4000000 type=float32]", 0, 50);
  g.f.launch(g.cpu, "cudaLaunchKernel", 5, 1, ++g.correlation);
  g.f.kernel(g.gpu, "own", 60, 8'000, g.correlation);
  g.at = 20'000;
  g.op("aten::mm", "", "", {1'000});
  const Answer answer = g.answer();
  CHECK(cell(answer, "ops", "op", "mine", "family") == Value(std::string("custom")));
  CHECK(cell(answer, "ops", "op", "mine", "attained_share") == Value(0.5));
  CHECK(cell(answer, "unmodelled", "name", "aten::mm", "why") == Value(std::string("no sizes")));
}

TEST_CASE("roofline: what tells the rows of ops apart stands in front, where a narrow terminal keeps it") {
  Gpu g;
  g.op("aten::mm", "[[64,64],[64,64]]", kTwo, {1'000});
  g.op("aten::mm", "[[64,64],[64,32]]", kTwo, {1'000});
  const std::string text = report::table_text(*g.answer().table("ops"), {.width = 80});
  CHECK(text.find("[[64,64],[64,64]]") != text.npos);
  CHECK(text.find("[[64,64],[64,32]]") != text.npos);
}

}  // namespace
}  // namespace stepscope
