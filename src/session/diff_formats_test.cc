// A difference does not depend on who recorded: the same job as torch.profiler and as nsys write it.
#include <doctest/doctest.h>

#include "base/temp_fixture.h"
#include "read/nsys_sqlite/export_fixture.h"
#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

constexpr int kSteps = 12;
constexpr Ns kWait = 40'000;  // from the start of a step to its kernel

// A step: an op that launches one kernel, and a synchronization that ends with it.
struct Job {
  Ns kernel_ns;

  Ns step_ns(int step) const { return kWait + kernel_ns + step % 3 * 1'000; }  // no two steps are quite alike
  template <class Emit>
  void steps(Emit emit) const {
    Ns start = 1'000'000;
    for (int i = 0; i < kSteps; i++) {
      emit(i, start, start + step_ns(i));
      start += step_ns(i);
    }
  }
};

std::string us(Ns ns) { return std::to_string(ns / 1000) + "." + std::to_string(1000 + ns % 1000).substr(1); }

std::string kineto(const Job& job) {
  std::string text;
  const auto add = [&](const char* category, const std::string& name, const char* where, Ns start, Ns end,
                       const std::string& args) {
    text += std::string(text.empty() ? "" : ",\n") + R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
            R"(", )" + where + R"(, "ts": )" + us(start) + R"(, "dur": )" + us(end - start) + R"(, "args": {)" + args +
            "}}";
  };
  job.steps([&](int i, Ns start, Ns end) {
    const std::string correlation = R"("correlation": )" + std::to_string(100 + i);
    const char* host = R"("pid": 7, "tid": 7)";
    add("user_annotation", "ProfilerStep#" + std::to_string(i), host, start, end, "");
    add("cpu_op", "aten::mm", host, start + 1'000, start + 31'000, R"("External id": )" + std::to_string(i + 1));
    add("cuda_runtime", "cudaLaunchKernel", host, start + 11'000, start + 21'000, correlation);
    add("cuda_runtime", "cudaDeviceSynchronize", host, start + 32'000, start + kWait + job.kernel_ns, "");
    add("kernel", "gemm", R"("pid": 0, "tid": 13)", start + kWait, start + kWait + job.kernel_ns,
        R"("device": 0, "stream": 13, )" + correlation);
  });
  return R"({"schemaVersion": 1, "traceEvents": [)" + text + "]}";
}

void nsys(const Job& job, read::ExportFixture& f) {
  constexpr std::int64_t kPushPop = 59;
  f.old_schema();
  f.nvtx_table();
  f.string(1, "gemm");
  f.string(2, "cudaLaunchKernel_v7000");
  f.string(3, "cudaDeviceSynchronize_v3020");
  job.steps([&](int i, Ns start, Ns end) {
    f.range(start, std::to_string(end), kPushPop, "ProfilerStep#" + std::to_string(i));
    f.range(start + 1'000, std::to_string(start + 31'000), kPushPop, "aten::mm, op_id = " + std::to_string(i));
    f.call(start + 11'000, start + 21'000, 100 + i, 2);
    f.call(start + 32'000, start + kWait + job.kernel_ns, 0, 3);
    f.kernel(start + kWait, start + kWait + job.kernel_ns, 100 + i);
  });
  f.close();
}

const Table& table(const diff::Difference& found, std::string_view name) { return *found.answer.table(name); }

diff::Difference difference(const Run& a, const Run& b) {
  Result<diff::Difference> found = diff::diff(a, b, {.levels = {}, .gates = {*diff::parse_gate("step>3%")}});
  REQUIRE(found);
  return *std::move(found);
}

}  // namespace

TEST_CASE("diff: the same job recorded by torch and by nsys does not differ") {
  const Job job{200'000};
  const TempFile file(kineto(job));
  read::ExportFixture exported;
  nsys(job, exported);
  const diff::Difference found = difference(opened(file.path()), opened(exported.path));
  CHECK(found.answer.scalar("step_a_ns")->value == found.answer.scalar("step_b_ns")->value);
  CHECK(found.answer.scalar("step_significant")->value == Value(false));
  CHECK(found.gates.front().failed == false);
  CHECK(cell(table(found, "kernels"), "gemm", "match") == Value(std::string("same")));
  CHECK(cell(table(found, "kernels"), "gemm", "delta_ns") == Value(Ns{0}));
  CHECK(cell(table(found, "operators"), "aten::mm", "match") == Value(std::string("same")));
}

TEST_CASE("diff: a slower kernel is found across formats") {
  const Job before{200'000}, after{240'000};
  const TempFile file(kineto(before));
  read::ExportFixture exported;
  nsys(after, exported);
  const diff::Difference found = difference(opened(file.path()), opened(exported.path));
  CHECK(found.answer.scalar("step_delta_ns")->value == Value(Ns{40'000}));
  CHECK(found.answer.scalar("step_significant")->value == Value(true));
  CHECK(found.gates.front().failed == true);
  CHECK(cell(table(found, "kernels"), "gemm", "delta_ns") == Value(Ns{40'000}));
  CHECK(cell(table(found, "kernels"), "gemm", "significant") == Value(true));
}

}  // namespace stepscope
