// flops on traces built by hand: which operators count, in which part, for which module, and what stays uncounted.
#include <doctest/doctest.h>

#include <algorithm>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

// An addmm of 48 FLOP, with a child as it has when it runs.
constexpr std::string_view kDims = "[[4],[2,3],[3,4],[],[]]", kTypes = R"(["float","float","float","",""])";
constexpr Ns kFlop = 48;

OpIds shaped(Ns sequence = kAbsent, Ns fwd_thread = kAbsent) {
  return {.sequence = sequence, .fwd_thread = fwd_thread, .dims = kDims, .types = kTypes};
}

SliceId addmm(TraceFixture& f, TrackId track, Ns start, OpIds ids = shaped()) {
  const SliceId id = f.op(track, "aten::addmm", start, 10, ids);
  f.op(track, "aten::resolve_conj", start + 1, 1);
  return id;
}

const std::string kNode = "autograd::engine::evaluate_function: ";

TEST_CASE("flops: the outermost operator with a formula counts, in the step that it ran in") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int step = 0; step < 3; step++) f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * 100, 100);
  f.op(cpu, "aten::linear", 105, 40, {.dims = "[[2,3],[4,3],[4]]"});
  addmm(f, cpu, 110);
  f.op(cpu, "aten::mm", 115, 2, {.dims = "[[2,3],[3,4]]"});  // what addmm is made of
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(ns(answer, "total_flop") == kFlop);
  CHECK(ns(answer, "causal_flop") == kFlop);
  CHECK(ns(answer, "backward_flop") == 0);
  CHECK(cell(answer, "steps", "step", "ProfilerStep#1", "forward_flop") == Value(kFlop));
  CHECK(cell(answer, "steps", "step", "ProfilerStep#2", "forward_flop") == Value(Ns{0}));
  CHECK(cell(answer, "by_op", "op", "aten::addmm", "time_ns") == Value(Ns{10}));
  CHECK(cell(answer, "by_dtype", "dtype", "float32", "share") == Value(1.0));
  CHECK(answer.table("by_op")->rows.size() == 1);
}

TEST_CASE("flops: a forward that runs again in backward, and the operator that it leaves before it runs") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2");
  addmm(f, cpu, 0, shaped(7, 0));
  f.op(engine, kNode + "AddmmBackward0", 100, 100, {.sequence = 7, .fwd_thread = 1});
  addmm(f, engine, 105, shaped(8, 0));                 // runs again
  f.op(engine, "aten::addmm", 120, 10, shaped(9, 0));  // is begun
  f.op(engine, "aten::detach", 121, 5);                // keeps its input
  f.op(engine, "detach", 122, 2);
  f.op(engine, "AddmmBackward0", 140, 50, {.sequence = 7, .fwd_thread = 1});
  f.op(engine, "aten::mm", 150, 10, {.dims = "[[2,4],[4,3]]"});
  f.op(engine, "aten::resolve_conj", 151, 1);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(ns(answer, "forward_flop") == kFlop);
  CHECK(ns(answer, "recompute_flop") == kFlop);
  CHECK(ns(answer, "backward_flop") == kFlop);
  CHECK(cell(answer, "by_part", "part", "recompute", "calls") == Value(Ns{1}));
}

TEST_CASE("flops: gradients of gradients are backward although autograd keeps them too") {
  TraceFixture f;
  const TrackId engine = f.host("2");
  f.op(engine, kNode + "AddmmBackward0", 100, 100, {.sequence = 7, .fwd_thread = 1});
  f.op(engine, "AddmmBackward0", 110, 80, {.sequence = 20, .fwd_thread = 0});
  addmm(f, engine, 120, shaped(21, 0));
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(ns(answer, "backward_flop") == kFlop);
  CHECK(ns(answer, "recompute_flop") == 0);
}

TEST_CASE("flops: what the compiler tries out did not run") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "_compile.compile_inner (dynamo_timed)", 0, 100);
  addmm(f, cpu, 10);
  f.op(cpu, "Torch-Compiled Region: 0/0", 200, 50);
  addmm(f, cpu, 210);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(ns(answer, "total_flop") == kFlop);
  CHECK(real(answer, "counted_share") == doctest::Approx(10.0 / 50));
}

TEST_CASE("flops: half of attention under a causal mask, fused and made of products") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2");
  f.op(cpu, "aten::_scaled_dot_product_attention_math", 0, 50, {.concrete = R"(["","","","","0.","True"])"});
  f.op(cpu, "aten::bmm", 10, 10, {.sequence = 5, .fwd_thread = 0, .dims = "[[1,2,3],[1,3,4]]"});
  f.op(engine, kNode + "BmmBackward0", 100, 50, {.sequence = 5, .fwd_thread = 1});
  f.op(engine, "aten::bmm", 110, 10, {.dims = "[[1,2,4],[1,4,3]]"});
  f.op(cpu, "aten::_scaled_dot_product_flash_attention", 200, 10,
       {.dims = "[[1,1,2,3],[1,1,2,3],[1,1,2,3]]", .concrete = R"(["","","","0.","True"])"});
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(ns(answer, "total_flop") == 48 + 48 + 48);
  CHECK(ns(answer, "causal_flop") == 24 + 24 + 24);
}

TEST_CASE("flops: a gradient belongs to the module of the forward operator, a list of modules has what is in it") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: layers.0 (Linear)", 10, 30);
  addmm(f, cpu, 15, shaped(7, 0));
  f.op(cpu, "stepscope.module: layers.1 (Linear)", 50, 30);
  addmm(f, cpu, 55, shaped(8, 0));
  addmm(f, cpu, 85, shaped(9, 0));
  addmm(f, cpu, 150);
  f.op(engine, kNode + "AddmmBackward0", 300, 50, {.sequence = 8, .fwd_thread = 1});
  f.op(engine, "aten::mm", 310, 10, {.dims = "[[2,4],[4,3]]"});
  f.trace.module_sizes = {{"Net", 5}, {"layers", 0}, {"layers.0", 12}, {"layers.1.never.called", 7}, {"head", 3}};
  const Answer answer = ask(run_of(std::move(f)), "flops");
  const auto of = [&](const char* module, const char* column) {
    return cell(answer, "by_module", "module", module, column);
  };
  CHECK(of("layers.0", "forward_flop") == Value(kFlop));
  CHECK(of("layers.0", "backward_flop") == Value(Ns{0}));
  CHECK(of("layers.1", "backward_flop") == Value(kFlop));
  CHECK(of("layers.1", "class") == Value(std::string("Linear")));
  CHECK(of("layers", "forward_flop") == Value(2 * kFlop));
  CHECK(of("layers", "class") == Value());
  CHECK(of("Net", "forward_flop") == Value(3 * kFlop));
  CHECK(of("Net", "own_flop") == Value(kFlop));
  CHECK(of("Net", "depth") == Value(Ns{0}));
  CHECK(of("layers.1", "depth") == Value(Ns{2}));
  CHECK(of("layers.1", "parent") == Value(std::string("layers")));
  CHECK(of("layers.1", "parameters") == Value(Ns{7}));
  CHECK(of("layers", "parameters") == Value(Ns{19}));
  CHECK(of("Net", "parameters") == Value(Ns{27}));
  CHECK(of("Net", "forward_macs") == Value(3 * kFlop / 2));
  CHECK(of("layers", "parent") == Value(std::string("Net")));
  const auto& rows = answer.table("by_module")->rows;
  CHECK(rows.back()[1] == Value());  // in no module
  CHECK(rows.back()[5] == Value(kFlop));
}

TEST_CASE("flops: a gradient belongs to its module where only what runs as the node says whose it is") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: layer (FSDPLinear)", 10, 30);
  addmm(f, cpu, 15, shaped(7, 0));
  f.op(cpu, kNode + "AddmmBackward0", 300, 50);
  f.op(cpu, "AddmmBackward0", 305, 40, {.sequence = 7, .fwd_thread = 1});
  f.op(cpu, "aten::mm", 310, 10, {.dims = "[[2,4],[4,3]]"});
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(cell(answer, "by_module", "module", "layer", "backward_flop") == Value(kFlop));
}

TEST_CASE("flops: models of one class are told apart by their numbers") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "stepscope.module: Stage (Stage)", 0, 100);
  f.op(cpu, "stepscope.module: Stage.first (Linear)", 10, 30);
  addmm(f, cpu, 15);
  f.op(cpu, "stepscope.module: Stage#2 (Stage)", 200, 100);
  f.op(cpu, "stepscope.module: Stage#2.first (Linear)", 210, 30);
  addmm(f, cpu, 215);
  addmm(f, cpu, 225);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(cell(answer, "by_module", "module", "Stage", "forward_flop") == Value(kFlop));
  CHECK(cell(answer, "by_module", "module", "Stage#2", "forward_flop") == Value(2 * kFlop));
  CHECK(cell(answer, "by_module", "module", "Stage#2.first", "parent") == Value(std::string("Stage#2")));
}

TEST_CASE("flops: frames have no paths: theirs are the frames around them") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.slice(cpu, "python_function", "nn.Module: Net_0", 0, 100);
  f.slice(cpu, "python_function", "nn.Module: Linear_3", 10, 30);
  addmm(f, cpu, 15);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(cell(answer, "by_module", "module", "Net_0.Linear_3", "own_flop") == Value(kFlop));
  CHECK(cell(answer, "by_module", "module", "Net_0", "forward_flop") == Value(kFlop));
}

TEST_CASE("flops: kernels that are counted, without formula, without sizes and without operator") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  addmm(f, cpu, 0);
  f.launch(cpu, "cudaLaunchKernel", 3, 2, 1);
  f.op(cpu, "aten::relu", 20, 10, {.dims = "[[2,4]]"});
  f.launch(cpu, "cudaLaunchKernel", 22, 2, 2);
  f.op(cpu, "aten::mm", 40, 10);
  f.launch(cpu, "cudaLaunchKernel", 42, 2, 3);
  f.kernel(gpu, "ampere_sgemm_128x64_tn", 100, 50, 1);
  f.kernel(gpu, "relu_kernel", 200, 20, 2);
  f.kernel(gpu, "ampere_sgemm_128x64_tn", 300, 20, 3);
  f.kernel(gpu, "mine", 400, 10);
  f.device(gpu, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 500, 1000);  // no product was ever in a copy
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(real(answer, "counted_share") == doctest::Approx(0.5));
  CHECK(real(answer, "no_formula_share") == doctest::Approx(0.2));
  CHECK(real(answer, "no_sizes_share") == doctest::Approx(0.2));
  CHECK(real(answer, "no_operator_share") == doctest::Approx(0.1));
  CHECK(cell(answer, "by_op", "op", "aten::addmm", "time_ns") == Value(Ns{50}));
  CHECK(cell(answer, "by_op", "op", "aten::addmm", "flop_per_s") == Value(kFlop * 1e9 / 50));
  CHECK(cell(answer, "uncounted", "name", "aten::mm", "why") == Value(std::string("no sizes")));
  CHECK(cell(answer, "uncounted", "name", "mine", "why") == Value(std::string("no operator")));
  REQUIRE(answer.notes.size() == 2);
  CHECK(answer.notes[0].find("lower bounds") != std::string::npos);
}

TEST_CASE("flops: a convolution without its arguments, by its gradient; unknown without one, never 0") {
  const auto convolution = [](bool trained) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), engine = f.host("2");
    f.op(cpu, "aten::convolution", 0, 10, {.sequence = 3, .fwd_thread = 0, .dims = "[[1,1,4,4],[1,1,3,3],[]]"});
    f.op(engine, kNode + "ConvolutionBackward0", 100, 50, {.sequence = trained ? 3 : 4, .fwd_thread = 1});
    f.op(engine, "aten::convolution_backward", 110, 10, {.dims = "[[1,1,2,2],[1,1,4,4],[1,1,3,3]]"});
    return ask(run_of(std::move(f)), "flops");
  };
  const Answer known = convolution(true);
  CHECK(ns(known, "forward_flop") == 2 * 4 * 9);
  CHECK(unknown(known, "backward_flop"));  // which gradients ran is not recorded
  CHECK(unknown(convolution(false), "forward_flop"));
}

// One addmm of 48 FLOP in bfloat16 on an H100 in each of two steps of `wall_ns`.
Run on_h100(Ns wall_ns, std::string_view device = "NVIDIA H100 80GB HBM3", bool again = false) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), engine = f.host("2");
  f.trace.devices.push_back({.id = 0, .name = std::string(device)});
  constexpr std::string_view types = R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","",""])";
  constexpr std::string_view dims = "[[4],[2000000,300],[300,400],[],[]]";
  for (Ns step = 0; step < 4; step++) {
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * wall_ns, wall_ns);
    f.op(cpu, "aten::addmm", step * wall_ns + 10, 30, {.dims = dims, .types = types});
    f.launch(cpu, "cudaLaunchKernel", step * wall_ns + 20, 10, step + 1);
    f.kernel(gpu, "sm90_xmma_gemm_bf16", step * wall_ns + 50, 100, step + 1);
    if (!again) continue;
    f.op(engine, kNode + "AddmmBackward0", step * wall_ns + 200, 300, {.sequence = 7, .fwd_thread = 1});
    f.op(engine, "aten::addmm", step * wall_ns + 210, 30,
         {.sequence = 8, .fwd_thread = 0, .dims = dims, .types = types});
    f.op(engine, "aten::resolve_conj", step * wall_ns + 220, 5);
    f.op(engine, "aten::mul", step * wall_ns + 300, 30);
  }
  return run_of(std::move(f));
}

TEST_CASE("flops: the share of the peak, of the model's FLOP and of all that ran") {
  const double ideal_ns = 2.0 * 2e6 * 300 * 400 / 989e12 * 1e9;
  const Ns wall = 1'000'000;
  const Answer plain = ask(on_h100(wall), "flops");
  CHECK(real(plain, "mfu") == doctest::Approx(ideal_ns / wall));
  CHECK(real(plain, "hfu") == doctest::Approx(ideal_ns / wall));
  CHECK(cell(plain, "steps", "step", "ProfilerStep#1", "mfu") == plain.scalar("mfu")->value);
  CHECK(cell(plain, "peaks", "dtype", "bfloat16", "peak_flop_per_s") == Value(989e12));
  const Answer again = ask(on_h100(wall, "NVIDIA H100 80GB HBM3", true), "flops");
  CHECK(real(again, "mfu") == doctest::Approx(ideal_ns / wall));
  CHECK(real(again, "hfu") == doctest::Approx(2 * ideal_ns / wall));
}

TEST_CASE("flops: no share of a peak above 100 %, of a device that no table knows, or of a type without a peak") {
  const Answer fast = ask(on_h100(100'000), "flops");
  CHECK(unknown(fast, "mfu"));
  CHECK(cell(fast, "steps", "step", "ProfilerStep#1", "hfu") == Value());
  CHECK(std::any_of(fast.notes.begin(), fast.notes.end(),
                    [](const std::string& note) { return note.find("485 %") != std::string::npos; }));
  const Answer strange = ask(on_h100(1'000'000, "Made-up GPU"), "flops");
  CHECK(unknown(strange, "mfu"));
  CHECK(strange.scalar("mfu")->meaning.find("Made-up GPU") != std::string::npos);
  const Answer old = ask(on_h100(1'000'000, "Tesla V100-SXM2-16GB"), "flops");
  CHECK(unknown(old, "mfu"));
  CHECK(old.scalar("mfu")->meaning.find("bfloat16") != std::string::npos);
}

TEST_CASE("flops: nothing recorded is unknown, and so is a mask that was not") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  for (const char* name :
       {"forward_flop", "backward_flop", "recompute_flop", "total_flop", "causal_flop", "step_flop"}) {
    CHECK(unknown(answer, name));
  }
  CHECK(real(answer, "no_sizes_share") == 1.0);
  TraceFixture g;
  g.op(g.host("1"), "aten::_scaled_dot_product_flash_attention", 0, 10, {.dims = "[[1,1,2,3],[1,1,2,3],[1,1,2,3]]"});
  const Answer attention = ask(run_of(std::move(g)), "flops");
  CHECK(ns(attention, "total_flop") == 48);
  CHECK(unknown(attention, "causal_flop"));
}

TEST_CASE("flops: a step of which nothing could be counted is unknown, not 0") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int step = 0; step < 3; step++) f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * 100, 100);
  addmm(f, cpu, 10);
  f.op(cpu, "aten::mm", 110, 10);  // without sizes
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(cell(answer, "steps", "step", "ProfilerStep#0", "forward_flop") == Value(kFlop));
  CHECK(cell(answer, "steps", "step", "ProfilerStep#1", "forward_flop") == Value());
  CHECK(cell(answer, "steps", "step", "ProfilerStep#1", "flop_per_s") == Value());
  CHECK(cell(answer, "steps", "step", "ProfilerStep#2", "forward_flop") == Value(Ns{0}));
}

// Of the user's table, or said by a range: forward, and backward by the node of autograd.
struct Custom {
  TraceFixture f;
  TrackId cpu = f.host("1"), engine = f.host("2");

  void backward(Ns sequence, std::string_view name) {
    f.op(engine, kNode + std::string(name), 100, 50, {.sequence = sequence, .fwd_thread = 1});
    f.op(engine, name, 105, 40, {.sequence = sequence, .fwd_thread = 1, .dims = "[[2,5]]"});
    f.op(engine, "aten::mm", 110, 10, {.dims = "[[2,4],[4,3]]"});  // part of what the rule tells
    f.op(engine, "aten::resolve_conj", 111, 1);
  }
  Answer answer(std::string table = "") {
    Run run = run_of(std::move(f));
    run.flop_rules = {"mine.txt", std::move(table)};
    return ask(run, "flops");
  }
};

TEST_CASE("flops: a rule of the user's tells forward and backward of an autograd function") {
  Custom c;
  c.f.op(c.cpu, "MyFunction", 0, 20,
         {.sequence = 7, .fwd_thread = 0, .dims = "[[2,3],[3,5]]", .types = R"(["c10::BFloat16","float"])"});
  c.f.op(c.cpu, "aten::mm", 5, 5, {.dims = "[[2,3],[3,5]]"});
  c.backward(7, "MyFunctionBackward");
  const Answer answer = c.answer("mine | ^MyFunction$ | 2*prod(d0)*d1[1] | 3*forward | - | it is mine\n");
  CHECK(ns(answer, "forward_flop") == 60);
  CHECK(ns(answer, "backward_flop") == 180);
  CHECK(answer.table("by_op")->rows.size() == 2);
  CHECK(cell(answer, "by_op", "part", "backward", "op") == Value(std::string("MyFunction")));
  CHECK(cell(answer, "by_op", "part", "backward", "dtype") == Value(std::string("bfloat16")));
  CHECK(cell(answer, "by_op", "part", "backward", "time_ns") == Value(Ns{50}));
}

TEST_CASE("flops: a rule that only counts where nothing below it does") {
  Custom c;
  c.f.op(c.cpu, "MyFunction", 0, 20, {.sequence = 7, .fwd_thread = 0, .dims = "[[2,3],[3,5]]"});
  c.f.op(c.cpu, "aten::mm", 5, 5, {.dims = "[[2,3],[3,4]]"});
  c.backward(7, "MyFunctionBackward");
  const Answer answer = c.answer("mine | ^MyFunction$ | 2*prod(d0)*d1[1] | 3*forward | unless below | it is mine\n");
  CHECK(ns(answer, "forward_flop") == 48);
  CHECK(ns(answer, "backward_flop") == 48);
}

TEST_CASE("flops: a rule of the user's wins over a formula of torch's operators, and its unknown stays unknown") {
  Custom c;
  addmm(c.f, c.cpu, 0);
  const Answer answer = c.answer("mine | ^aten::addmm$ | unknown | - | - | sparse\n");
  CHECK(answer.scalar("forward_flop")->value == Value());
  CHECK(cell(answer, "uncounted", "name", "aten::addmm", "why") == Value(std::string("no sizes")));
}

TEST_CASE("flops: what a range says of its work counts for all that runs in it, and for its backward pass once") {
  Custom c;
  c.f.annotation(c.cpu, "my kernel [flop=1000 backward_flop=2500 type=bfloat16]", 0, 60);
  addmm(c.f, c.cpu, 10, shaped(7, 0));
  addmm(c.f, c.cpu, 30, shaped(8, 0));
  c.backward(7, "AddmmBackward0");
  c.f.op(c.engine, kNode + "AddmmBackward0", 200, 50, {.sequence = 8, .fwd_thread = 1});
  c.f.op(c.engine, "aten::mm", 210, 10, {.dims = "[[2,4],[4,3]]"});
  c.f.op(c.engine, "aten::resolve_conj", 211, 1);
  const Answer answer = c.answer();
  CHECK(ns(answer, "forward_flop") == 1000);
  CHECK(ns(answer, "backward_flop") == 2500);
  CHECK(cell(answer, "by_op", "part", "forward", "op") == Value(std::string("my kernel")));
  CHECK(cell(answer, "by_dtype", "dtype", "bfloat16", "flop") == Value(Ns{3500}));
}

TEST_CASE("flops: a table of the user's that is wrong is refused with its line") {
  Custom c;
  addmm(c.f, c.cpu, 0);
  Run run = run_of(std::move(c.f));
  run.flop_rules = {"mine.txt", "mine | ^x$ | 2 * | - | - | why\n"};
  const auto all = analyze::analyses();
  const auto flops = std::find_if(all.begin(), all.end(), [](const auto& one) { return one.name == "flops"; });
  const auto refused = flops->run(run, {});
  REQUIRE_FALSE(refused);
  CHECK(to_text(refused.error()).find("mine.txt: line 1: the formula has its end") != std::string::npos);
}

TEST_CASE("flops: a rule of the user's that fits no operator is told") {
  TraceFixture f;
  addmm(f, f.host("1"), 0);
  Run run = run_of(std::move(f));
  run.flop_rules = {"mine.txt", "gone | ^acme::gone$ | 2 | - | - | why\nthere | addmm | 2 | - | - | why\n"};
  const Answer answer = ask(run, "flops");
  const auto told = std::count_if(answer.notes.begin(), answer.notes.end(), [](const auto& note) {
    return note.starts_with("Rule gone of --flop-rules fits no");
  });
  CHECK(told == 1);
  CHECK(std::none_of(answer.notes.begin(), answer.notes.end(),
                     [](const auto& note) { return note.starts_with("Rule there"); }));
}

TEST_CASE("flops: a rule of the user's whose formula gives nothing is told by its name") {
  for (const char* formula : {"prod(d0)/0", "0-prod(d0)", "1e300*1e300", "prod(d99)"}) {
    CAPTURE(formula);
    Custom c;
    addmm(c.f, c.cpu, 0);
    const Answer answer = c.answer("mine | addmm | " + std::string(formula) + " | - | - | why\n");
    CHECK(unknown(answer, "forward_flop"));
    CHECK(std::any_of(answer.notes.begin(), answer.notes.end(), [](const auto& note) {
      return note.starts_with("Rule mine of --flop-rules gives no number for 1 call of its operators");
    }));
  }
}

TEST_CASE("flops: more than can be added up is unknown, and says so") {
  const auto calls = [](int many) {
    Custom c;
    for (int call = 0; call < many; call++) addmm(c.f, c.cpu, 20 * call);
    return c.answer("mine | addmm | 1e18 | - | - | why\n");
  };
  CHECK(ns(calls(9), "forward_flop") == Ns{9} * 1'000'000'000'000'000'000);
  const Answer answer = calls(10);
  for (const char* name : {"forward_flop", "total_flop", "causal_flop"}) {
    CAPTURE(name);
    CHECK(unknown(answer, name));
    CHECK(answer.scalar(name)->meaning.starts_with("More than 9 EFLOP"));
  }
  CHECK(ns(answer, "backward_flop") == 0);
}

}  // namespace
}  // namespace stepscope
