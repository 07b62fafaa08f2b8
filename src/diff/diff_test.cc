// Pairing, gates and the shape of the answer, on runs built by hand.
#include "diff/diff.h"

#include <doctest/doctest.h>

#include "derive/derive.h"
#include "diff/pairs.h"
#include "model/trace_fixture.h"

namespace stepscope::diff {
namespace {

using Ns = std::int64_t;

struct Work {
  std::string op, kernel;
  Ns kernel_us;
};

// Steps in which each op launches its kernel; the k-th step is a little longer than the one before.
Run run_of(const std::vector<Work>& works, int steps = 6) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  Ns at = 1'000'000, correlation = 1;
  for (int step = 0; step < steps; step++) {
    const Ns start = at;
    for (const Work& work : works) {
      f.op(cpu, work.op, at, 100'000);
      f.launch(cpu, "cudaLaunchKernel", at + 10'000, 10'000, correlation);
      f.kernel(gpu, work.kernel, at + 30'000, work.kernel_us * 1000 + step, correlation++);
      f.launch(cpu, "cudaDeviceSynchronize", at + 110'000, std::max<Ns>(1000, work.kernel_us * 1000 - 75'000), 0);
      at += work.kernel_us * 1000 + 200'000;
    }
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), start, at - start);
    at += 10'000;
  }
  REQUIRE(derive::derive(f.trace, {}));
  Run run;
  run.path = "made";
  run.traces.push_back(std::move(f.trace));
  return run;
}

Difference difference(const Run& a, const Run& b, std::vector<std::string> gates = {}) {
  Options options;
  for (const std::string& gate : gates) options.gates.push_back(*parse_gate(gate));
  Result<Difference> found = diff(a, b, options);
  REQUIRE(found);
  return *std::move(found);
}

// "name → name_b: match" of every row of the table.
std::string matches(const Difference& found, std::string_view table) {
  std::string out;
  for (const auto& row : found.answer.table(table)->rows) {
    const auto word = [&](std::size_t at) {
      return std::holds_alternative<std::string>(row[at]) ? std::get<std::string>(row[at]) : std::string();
    };
    out += word(0) + (word(1).empty() ? "" : " → " + word(1)) + ": " + word(3) + "\n";
  }
  return out;
}

TEST_CASE("diff: the same kernel, a renamed one, several replaced by one, new and gone ones") {
  const Run a = run_of({{"aten::mm", "ampere_sgemm_128x64_tn", 500},
                        {"aten::gelu", "elementwise_gelu", 300},
                        {"aten::add", "elementwise_add", 200},
                        {"aten::sum", "reduce_kernel", 100},
                        {"aten::sum", "cast_kernel", 50},
                        {"aten::old", "old_kernel", 10}});
  const Run b = run_of({{"aten::mm", "ampere_sgemm_64x64_tn", 600},
                        {"triton_poi_fused_add_gelu_0", "triton_poi_fused_add_gelu_0", 280},
                        {"aten::sum", "one_pass", 120},
                        {"aten::fresh", "fresh_kernel", 20}});
  const Difference found = difference(a, b);
  CHECK(matches(found, "kernels") ==
        "elementwise_gelu + elementwise_add → triton_poi_fused_add_gelu_0: fused\n"
        "ampere_sgemm_128x64_tn → ampere_sgemm_64x64_tn: renamed\n"
        "reduce_kernel + cast_kernel → one_pass: replaced\n"
        "fresh_kernel: only in B\n"
        "old_kernel: only in A\n");
  CHECK(found.answer.scalar("step_significant")->value == Value(true));
}

TEST_CASE("diff: names that share only their family are no pair") {
  CHECK(likeness("autograd::engine::evaluate_function: AddBackward0",
                 "autograd::engine::evaluate_function: MulBackward0") < 0.6);
  CHECK(likeness("aten::add", "aten::mul") == 0);
  CHECK(likeness("aten::add", "aten::add_") == 1);
  CHECK(likeness("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention") > 0.8);
  CHECK(likeness("ampere_sgemm_128x64_tn", "ampere_sgemm_64x64_tn") >= 0.6);
  CHECK(likeness("", "") == 1);
}

TEST_CASE("diff: the waterfall names the kernel that grew, and nothing else") {
  const Run a = run_of({{"aten::mm", "gemm", 500}, {"aten::gelu", "gelu", 300}});
  const Run b = run_of({{"aten::mm", "gemm", 560}, {"aten::gelu", "gelu", 300}});
  const Difference found = difference(a, b);
  const Table& table = *found.answer.table("waterfall");
  const auto text_at = [&](std::size_t row, std::size_t column) {
    return std::get<std::string>(table.rows[row][column]);
  };
  REQUIRE(table.rows.size() >= 4);
  CHECK(text_at(0, 0) == "step");
  CHECK((text_at(1, 0) + ", " + text_at(1, 1) + ", " + text_at(1, 2)) ==
        "class, compute, Compute kernels, all together");
  CHECK((text_at(2, 0) + ", " + text_at(2, 2)) == "part, gemm");
  CHECK(table.rows[2][6] == Value(Ns{60'000}));
  CHECK(text_at(3, 0) == "rest");
  // What stands under a line adds up to it: classes to the step, parts and rest to their class.
  for (const std::size_t column : {std::size_t{4}, std::size_t{5}, std::size_t{6}}) {
    std::map<std::string, Ns> sums;
    for (const auto& row : table.rows) {
      const auto& level = std::get<std::string>(row[0]);
      sums[level == "part" || level == "rest" ? std::get<std::string>(row[1]) : level] += std::get<Ns>(row[column]);
    }
    CHECK(sums["step"] == sums["class"]);
    CHECK(sums["compute"] == std::get<Ns>(table.rows[1][column]));
  }
  const Table& kernels = *found.answer.table("kernels");
  REQUIRE(kernels.columns[5].name == "change");
  CHECK(std::get<double>(kernels.rows[0][5]) == doctest::Approx(60.0 / 500));
  CHECK(std::get<double>(found.answer.scalar("attributed_share")->value) == doctest::Approx(1));
  REQUIRE(found.answer.findings.size() == 1);
  CHECK(found.answer.findings[0].id == "step_slower");
}

TEST_CASE("diff: runs are called by their names, where these fit a heading") {
  const Run a = run_of({{"aten::mm", "gemm", 500}}),
            b = run_of({{"aten::mm", "gemm", 600}, {"aten::gelu", "gelu", 300}});
  const auto named = [&](const char* name_a, const char* name_b) {
    Result<Difference> found = diff(a, b, {.name_a = name_a, .name_b = name_b});
    REQUIRE(found);
    return *std::move(found);
  };
  const Difference short_names = named("runs.d/old.json.gz", "new.json");
  CHECK(short_names.answer.scalar("step_b_ns")->label == "step of new");
  CHECK(short_names.answer.table("waterfall")->columns[5].label == "new");
  CHECK(short_names.answer.findings.front().sentence.find("'new' is slower than that of 'runs.d/old'") !=
        std::string::npos);
  std::string matches;
  for (const auto& row : short_names.answer.table("kernels")->rows) matches += std::get<std::string>(row[3]) + ";";
  CHECK(matches.find("only in 'new'") != std::string::npos);
  const std::string long_name(40, 'x');
  const Difference long_names = named("old", long_name.c_str());
  CHECK(long_names.answer.scalar("step_b_ns")->label.empty());
  CHECK(long_names.answer.notes.front() == "A is 'old', B is '" + long_name + "'.");
  CHECK(named("x.json", "x.pt").answer.scalar("step_b_ns")->label == "step of x.pt");
  CHECK(named("same", "same").answer.notes.front().find("same") == std::string::npos);
}

TEST_CASE("diff: gates look at the named row, and say when they cannot tell") {
  const Run a = run_of({{"aten::mm", "gemm", 500}, {"aten::gelu", "gelu", 300}});
  const Run b = run_of({{"aten::mm", "gemm", 700}, {"aten::gelu", "gelu", 300}});
  const Difference found = difference(a, b,
                                      {"step>3%", "step > 30%", "kernel:GEMM>0.1ms", "kernel:gemm>0.3ms",
                                       "kernel:gelu>0%", "operator:nothing>1%", "phase:other>1us"});
  std::vector<std::optional<bool>> failed;
  for (const GateResult& result : found.gates) failed.push_back(result.failed);
  const std::vector<std::optional<bool>> expected{true, false, true, false, false, std::nullopt, true};
  CHECK(failed == expected);
  const Difference short_run = difference(run_of({{"aten::mm", "gemm", 500}}, 2), b, {"step>3%"});
  CHECK_FALSE(short_run.gates[0].failed);
  CHECK(short_run.answer.scalar("step_significant")->value == Value());
  CHECK(difference(b, a, {"step>3%"}).gates[0].failed == false);  // faster
}

TEST_CASE("diff: repeats of A say what noise between runs is") {
  const Run a = run_of({{"aten::mm", "gemm", 500}, {"aten::gelu", "gelu", 300}});
  const Run b = run_of({{"aten::mm", "gemm", 560}, {"aten::gelu", "gelu", 300}});
  const Run close = run_of({{"aten::mm", "gemm", 510}, {"aten::gelu", "gelu", 300}});
  const Run far = run_of({{"aten::mm", "gemm", 600}, {"aten::gelu", "gelu", 300}});
  for (const Run* again : {&close, &far}) {
    Result<Difference> found = diff(a, b, {.levels = {}, .gates = {}, .again = {again}});
    REQUIRE(found);
    CHECK(found->answer.scalar("step_significant")->value == Value(again == &close));
    const double noise = std::get<double>(found->answer.scalar("step_noise")->value);
    CHECK(noise == doctest::Approx(again == &close ? 10.0 / 1200 : 100.0 / 1200).epsilon(0.01));
  }
}

TEST_CASE("diff: gates that cannot be read") {
  for (const char* bad : {"", "step", "step>", "step>x%", "step>3", "step>-3%", "step>3 apples", "stepp>3%",
                          "kernel>3%", "step:x>3%", "kernel:>3%", ">3%", "step>nan%"}) {
    const auto gate = parse_gate(bad);
    REQUIRE_MESSAGE(!gate, bad);
    CHECK(gate.error().kind == ErrorKind::usage);
  }
  CHECK(parse_gate("step>2ms")->limit == 2e6);
  CHECK_FALSE(parse_gate("step>2ms")->relative);
  CHECK(parse_gate("operator:aten::mm>5 %")->name == "aten::mm");
}

TEST_CASE("diff: empty runs are answered, not refused") {
  Run empty;
  const Difference found = difference(empty, empty, {"step>3%"});
  CHECK_FALSE(found.gates[0].failed);
  CHECK(found.answer.scalar("step_a_ns")->value == Value());
}

}  // namespace
}  // namespace stepscope::diff
