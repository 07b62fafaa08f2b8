// Causes that lie in what operators are called, on jobs made by hand: found where they are, and not where they are not.
#include <doctest/doctest.h>

#include <string>

#include "diagnose/steps_fixture.h"
#include "model/settings.h"

namespace stepscope::diagnose {
namespace {

TEST_CASE("advice: a chain of elementwise operators on one size is one fault, a few of them are none") {
  const auto job = [](int operators) {
    return run_of([&](Thread& thread) {
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
      for (int i = 0; i < operators; i++)
        thread.op(i % 2 == 0 ? "aten::mul" : "aten::add", 2 * ms, {}, {.dims = kSquare});
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
    });
  };
  const Answer answer = advice_of(job(6));
  const Finding* found = find(answer, "elementwise_chain");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // 32 ms, of which 12 become between 0 and 6.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(32.0 / 20)).epsilon(0.02));
  CHECK(found->gain->speedup_low == doctest::Approx(32.0 / 26).epsilon(0.02));
  CHECK(find(advice_of(job(3)), "elementwise_chain") == nullptr);
}

TEST_CASE("advice: a normalization by hand is a chain with what it sums up, a sum at the end is none of it") {
  const auto job = [](bool normalizes) {
    return run_of([&](Thread& thread) {
      thread.op("aten::mm", 12 * ms, {}, {.dims = kTwoSquares});
      thread.op("aten::pow", 2 * ms, {}, {.dims = "[[256, 256], []]"});
      thread.op("aten::mul", 2 * ms, {}, {.dims = "[[256, 256], []]"});
      thread.op("aten::mean", 2 * ms, {}, {.dims = "[[256, 256], [], []]"});
      thread.op("aten::rsqrt", 1 * ms, {}, {.dims = "[[256, 1]]"});
      if (!normalizes) return;
      thread.op("aten::mul", 2 * ms, {}, {.dims = "[[256, 256], [256, 1]]"});
      thread.op("aten::add", 1 * ms, {}, {.dims = "[[256], []]"});
    });
  };
  const Answer answer = advice_of(job(true));
  const Finding* found = find(answer, "elementwise_chain");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Of 22 ms four passes of 2 ms become one pass at best, and what is small goes; the last one is behind them.
  // Where that may give nothing, what is left of the step is not told as faster.
  CHECK(found->gain->speedup_high == doctest::Approx(22.0 / (22 - 9 + 2)).epsilon(0.02));
  CHECK(found->gain->speedup_low == doctest::Approx(1).epsilon(0.01));
  CHECK(find(advice_of(job(false)), "elementwise_chain") == nullptr);
}

TEST_CASE("advice: elementwise operators on different sizes are no chain") {
  const Run run = run_of([](Thread& thread) {
    for (const char* sizes : {"[[64, 64]]", "[[128, 64]]", "[[64, 256]]", "[[512, 64]]", "[[64, 1024]]"}) {
      thread.op("aten::mul", 2 * ms, {}, {.dims = sizes});
    }
  });
  CHECK(find(advice_of(run), "elementwise_chain") == nullptr);
}

TEST_CASE("advice: product, softmax and product over the same scores are attention by hand") {
  const auto job = [](std::string_view behind) {
    return run_of([&](Thread& thread) {
      thread.op("aten::matmul", 2 * ms, {"train.py(30): attend"}, {.dims = "[[8, 64, 32], [8, 32, 64]]"});
      thread.op("aten::div", 3 * ms, {"train.py(30): attend"}, {.dims = "[[8, 64, 64], []]"});
      thread.op("aten::softmax", 5 * ms, {"train.py(30): attend"}, {.dims = "[[8, 64, 64], [], []]"});
      thread.op("aten::matmul", 2 * ms, {"train.py(30): attend"}, {.dims = behind});
      thread.op("aten::conv2d", 10 * ms);
    });
  };
  const Answer answer = advice_of(job("[[8, 64, 64], [8, 64, 32]]"));
  const Finding* found = find(answer, "attention_by_hand");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "attend");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.3);
  CHECK(find(advice_of(job("[[64, 32], [32, 16]]")), "attention_by_hand") == nullptr);  // a classifier's softmax
}

TEST_CASE("advice: a clone into another layout is a copy for nothing, one that the program asked for is none") {
  const auto job = [](std::string_view format) {
    return run_of([&](Thread& thread) {
      thread.nested("aten::contiguous", "aten::clone", 5 * ms, {.dims = kSquare},
                    {.dims = "[[256, 256], []]", .concrete = format});
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
    });
  };
  CHECK(find(advice_of(job(R"(["", "0"])")), "layout_copies") != nullptr);
  const Run asked = run_of([](Thread& thread) {
    thread.nested("aten::clone", "aten::copy_", 5 * ms, {.dims = "[[256, 256], []]", .concrete = R"(["", ""])"});
    thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
  });
  CHECK(find(advice_of(asked), "layout_copies") == nullptr);
}

TEST_CASE("advice: what a library's module copies of views that it makes itself is none of the program's") {
  const auto job = [](const std::vector<std::string>& below) {
    return run_of([&](Thread& thread) {
      std::vector<std::string> frames{"train.py(30): forward"};
      frames.insert(frames.end(), below.begin(), below.end());
      thread.op("aten::clone", 5 * ms, frames, {.dims = "[[256, 256], []]", .concrete = R"(["", "0"])"});
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
    });
  };
  CHECK(find(advice_of(job({})), "layout_copies") != nullptr);
  CHECK(find(advice_of(job({"torch/functional.py(5): einsum"})), "layout_copies") != nullptr);
  CHECK(find(advice_of(job({"nn.Module: MultiheadAttention_0", "torch/nn/functional.py(5): attend"})),
             "layout_copies") == nullptr);
  const auto given = [](std::string_view module, std::string_view name) {
    return run_of([&](Thread& thread) {
      thread.call({"train.py(30): forward", "nn.Module: " + std::string(module) + "_0"}, [&] {
        thread.code(10 * us);
        thread.nested(name, "aten::contiguous", 5 * ms, {.dims = "[[256, 256], []]"}, {.dims = "[[256, 256], []]"});
      });
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
    });
  };
  CHECK(find(advice_of(given("LayerNorm", "aten::layer_norm")), "layout_copies") != nullptr);
  CHECK(find(advice_of(given("Flatten", "aten::flatten")), "layout_copies") != nullptr);
  CHECK(find(advice_of(given("Attention", "aten::reshape")), "layout_copies") == nullptr);
}

TEST_CASE("advice: what was turned around in memory is turned back as a gradient, and added to others out of order") {
  const auto job = [](std::string_view gradient, std::string_view adds = {}) {
    return run_of([&](Thread& thread) {
      thread.nested("aten::contiguous", "aten::clone", 5 * ms, {.dims = kSquare},
                    {.dims = "[[256, 256], []]", .concrete = R"(["", "0"])"});
      thread.op("aten::mm", 10 * ms, {}, {.dims = kTwoSquares});
      if (!adds.empty()) thread.nested(adds, "aten::add", 10 * ms, {}, {.dims = "[[256, 256], [256, 256], []]"});
      thread.nested("torch::autograd::AccumulateGrad", "aten::copy_", 5 * ms, {}, {.dims = gradient});
    });
  };
  const Answer back = advice_of(job("[[256, 256], [256, 256], []]"));
  REQUIRE(find(back, "layout_copies") != nullptr);
  CHECK(fast_end(*find(back, "layout_copies")->gain) == doctest::Approx(at_most(2)).epsilon(0.02));
  CHECK(find(back, "layout_copies")->where.op == "aten::contiguous");
  constexpr std::string_view kTurned = "[[256, 256], [256, 256], []]";
  const Answer added = advice_of(job(kTurned, "autograd::engine::evaluate_function: EmbeddingBackward0"));
  REQUIRE(find(added, "layout_copies") != nullptr);
  CHECK(fast_end(*find(added, "layout_copies")->gain) == doctest::Approx(at_most(30.0 / 12)).epsilon(0.02));
  const Answer residual = advice_of(job(kTurned, "aten::add"));  // of a forward pass
  REQUIRE(find(residual, "layout_copies") != nullptr);
  CHECK(fast_end(*find(residual, "layout_copies")->gain) == doctest::Approx(at_most(30.0 / 20)).epsilon(0.02));
  const Answer other = advice_of(job("[[128, 256], [128, 256], []]"));
  REQUIRE(find(other, "layout_copies") != nullptr);
  CHECK(fast_end(*find(other, "layout_copies")->gain) == doctest::Approx(at_most(20.0 / 15)).epsilon(0.02));
}

TEST_CASE("advice: a forward pass inside the backward pass is recomputation") {
  const auto job = [](std::int64_t sequence) {
    return run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
      thread.nested("autograd::engine::evaluate_function: MmBackward0", "aten::mm", 6 * ms,
                    {.sequence = 7, .fwd_thread = 1}, {.sequence = sequence, .dims = kTwoSquares});
    });
  };
  const Answer answer = advice_of(job(8));
  const Finding* found = find(answer, "recomputation");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 4)).epsilon(0.02));
  CHECK(find(advice_of(job(kAbsent)), "recomputation") == nullptr);  // a gradient: nothing is recorded
}

TEST_CASE("advice: recomputation is seen on the thread where a backward pass runs, whichever that is") {
  TraceFixture f;
  const TrackId main = f.host("1"), engine = f.host("2");
  for (int i = 0; i < 4; i++) {
    const std::int64_t at = i * 10 * ms;
    f.slice(main, "user_annotation", "ProfilerStep#" + std::to_string(i), at, 10 * ms);
    f.op(main, "aten::mm", at, 4 * ms, {.sequence = 10 * i + 1, .fwd_thread = 0, .dims = kTwoSquares});
    f.op(engine, "autograd::engine::evaluate_function: MmBackward0", at + 4 * ms, 5 * ms,
         {.sequence = 10 * i + 1, .fwd_thread = 1});
    f.op(engine, "aten::mm", at + 4 * ms + us, 5 * ms - 2 * us, {.sequence = 10 * i + 2, .dims = kTwoSquares});
    f.op(main, "aten::add_", at + 9 * ms + 100 * us, 900 * us);
  }
  const Run run = derived(std::move(f));
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "recomputation");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 2);
}

TEST_CASE(
    "advice: code of a checkpoint around what is computed again goes with it, and the backward pass's own stays") {
  const auto gain = [](std::int64_t sequence) {
    TraceFixture f;
    const TrackId main = f.host("1");
    for (int i = 0; i < 4; i++) {
      const std::int64_t at = i * 10 * ms;
      f.slice(main, "user_annotation", "ProfilerStep#" + std::to_string(i), at, 10 * ms);
      f.op(main, "aten::mm", at, 3 * ms, {.sequence = 10 * i + 1, .fwd_thread = 0, .dims = kTwoSquares});
      f.op(main, "autograd::engine::evaluate_function: MmBackward0", at + 3 * ms, 7 * ms,
           {.sequence = 10 * i + 1, .fwd_thread = 1});
      f.op(main, "aten::mul", at + 3 * ms, 1 * ms);  // then code for 1 ms
      f.op(main, "aten::mm", at + 5 * ms, 2 * ms, {.sequence = sequence, .dims = kTwoSquares});
      f.op(main, "aten::add", at + 8 * ms, 2 * ms);  // and before this another
    }
    const Run run = derived(std::move(f));
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "recomputation");
    return found != nullptr && found->gain ? fast_end(*found->gain) : 0;
  };
  CHECK(gain(5) == doctest::Approx(at_most(10.0 / 6)).epsilon(0.02));
  CHECK(gain(kAbsent) == 0);
}

TEST_CASE("advice: the place of recomputation is where the program asks for it, or the loop in which it does") {
  const auto line = [](std::string_view called) {
    const std::vector<std::string> block{"train.py(30): forward", "torch/utils/checkpoint.py(354): checkpoint",
                                         "train.py(10): block"};
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, block, {.sequence = 7, .dims = kTwoSquares});
      thread.nested("autograd::engine::evaluate_function: MmBackward0", "aten::mm", 6 * ms,
                    {.sequence = 7, .fwd_thread = 1}, {.sequence = 8, .dims = kTwoSquares});
    });
    run.stack_steps[0].code = {{"train.py", 10, "", 0}, {"train.py", 30, std::string(called), 33}};
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "recomputation");
    REQUIRE(found != nullptr);
    CHECK(found->where.function == "forward");
    return found->where.line;
  };
  CHECK(line("checkpoint") == 33);
  CHECK(line("__next__") == 33);
  CHECK(line("mlp") == 30);
}

TEST_CASE("advice: the same node of the graph gone back through twice is a graph that was retained") {
  const Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
    for (int i = 0; i < 2; i++) {
      thread.op("autograd::engine::evaluate_function: MmBackward0", 3 * ms, {}, {.sequence = 7, .fwd_thread = 1});
      thread.op("aten::add", 1 * ms, {}, {.dims = kSquare});
    }
  });
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "retained_graph");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(12.0 / 9)).epsilon(0.02));
}

TEST_CASE("advice: a graph is retained from one step of an optimizer to that of another, which end a step") {
  std::int64_t number = 100;
  const auto job = [&](bool same) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("autograd::engine::evaluate_function: MmBackward0", 3 * ms, {},
                {.sequence = same ? number : number + 100, .fwd_thread = 1});
      thread.op("aten::mm", 4 * ms, {}, {.sequence = ++number, .dims = kTwoSquares});
      thread.op("autograd::engine::evaluate_function: MmBackward0", 3 * ms, {}, {.sequence = number, .fwd_thread = 1});
    }));
  };
  const Answer answer = job(true);
  const Finding* found = find(answer, "retained_graph");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(find(job(false), "retained_graph") == nullptr);
  // Numbers that begin anew in each step are of other graphs.
  CHECK(find(advice_of(run_of([](Thread& thread) {
               thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
               thread.op("autograd::engine::evaluate_function: MmBackward0", 6 * ms, {},
                         {.sequence = 7, .fwd_thread = 1});
             })),
             "retained_graph") == nullptr);
}

TEST_CASE("advice: a graph that is gone back through for a gradient of a gradient was not retained for nothing") {
  const Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
    for (int i = 0; i < 2; i++) {
      thread.nested("autograd::engine::evaluate_function: MmBackward0", "aten::mm", 3 * ms,
                    {.sequence = 7, .fwd_thread = 1}, {.sequence = i == 0 ? 8 : kAbsent, .dims = kTwoSquares});
      thread.op("aten::add", 1 * ms, {}, {.dims = kSquare});
    }
  });
  CHECK(find(advice_of(run), "retained_graph") == nullptr);
}

TEST_CASE("advice: large tensors made in each step, and what autograd looks for in its debug mode") {
  Run run = run_of([](Thread& thread) {
    thread.op("aten::zeros", 4 * ms, {}, {.dims = "[[], []]"});
    thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
    thread.nested("autograd::engine::evaluate_function: MmBackward0", "aten::isnan", 2 * ms,
                  {.sequence = 7, .fwd_thread = 1});
  });
  const Answer answer = advice_of(run);
  REQUIRE(find(answer, "allocation_in_steps") != nullptr);
  CHECK(find(answer, "debug_mode") != nullptr);
  const auto pages = [](const Answer& of) {
    const std::vector<Evidence>& all = find(of, "allocation_in_steps")->evidence;
    const auto one = std::find_if(all.begin(), all.end(),
                                  [](const Evidence& each) { return each.text == "Pages of new memory in a step"; });
    return one == all.end() ? -1 : std::get<std::int64_t>(one->value);
  };
  CHECK(pages(answer) == -1);
  run.traces[0].metadata.push_back({std::string(kPageFaults), "[4, 8192]"});
  CHECK(pages(advice_of(run)) == 8192);
  run.traces[0].metadata.back().json = "[4, 18446744073709551615]";
  CHECK(pages(advice_of(run)) == 1'000'000'000'000'000);
}

TEST_CASE("advice: deterministic algorithms fill new memory, other fills are the program's") {
  const auto job = [](std::string_view around, bool on) {
    Run run = run_of([&](Thread& thread) {
      thread.nested(around, "aten::fill_", 4 * ms, {.dims = "[[], []]"});
      thread.op("aten::mm", 6 * ms, {}, {.dims = kTwoSquares});
    });
    if (on) run.traces[0].metadata.push_back({"stepscope_deterministic", "true"});
    return advice_of(run);
  };
  const Answer answer = job("aten::empty", true);
  const Finding* found = find(answer, "debug_mode");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 6)).epsilon(0.02));
  CHECK(find(answer, "allocation_in_steps") == nullptr);
  CHECK(find(job("aten::empty", false), "debug_mode") == nullptr);
  CHECK(find(job("aten::full", true), "debug_mode") == nullptr);
}

TEST_CASE("advice: what anomaly mode costs the forward pass is what operators cost that do nothing else") {
  Run run = run_of([](Thread& thread) {
    for (int i = 0; i < 4; i++) {
      thread.op("aten::t", 103 * us, {}, {.sequence = 2 * i});
      thread.op("aten::mm", 600 * us, {}, {.sequence = 2 * i + 1, .dims = kTwoSquares});
    }
    for (int i = 4; i-- > 0;) {
      thread.op("autograd::engine::evaluate_function: MmBackward0", 10 * us, {},
                {.sequence = 2 * i + 1, .fwd_thread = 1});
      thread.op("autograd::engine::evaluate_function: TBackward0", 10 * us, {}, {.sequence = 2 * i, .fwd_thread = 1});
    }
  });
  run.traces[0].metadata.push_back({"stepscope_anomaly_mode", "true"});
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "debug_mode");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  const double now = 4 * 703 + 80, less = 4 * (2 + 499) + 80;
  CHECK(found->gain->speedup_low <= now / less);
  CHECK(found->gain->speedup_high >= now / less);
  // Stacks cost a tenth more than those of what does nothing else, and are let go behind the nodes of the graph.
  const double least = 4 * (2 + 488.9) + 8 * 2;
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(now / least)).epsilon(0.01));
}

TEST_CASE("advice: anomaly mode notes the stack of a node too that the backward pass never comes to") {
  const auto job = [](bool goes_on) {
    std::int64_t step = 0;
    Run run = run_of([&](Thread& thread) {
      const std::int64_t number = 36 * step++;
      for (int i = 0; i < 12; i++) {
        thread.op("aten::t", 103 * us, {}, {.sequence = number + 3 * i});
        thread.op("aten::clone", 102 * us, {}, {.sequence = number + 3 * i + (goes_on ? 1 : 0)});
        thread.op("aten::mm", 102 * us, {}, {.sequence = number + 3 * i + 2, .dims = kTwoSquares});
      }
      for (int i = 12; i-- > 0;) {
        thread.op("autograd::engine::evaluate_function: MmBackward0", 2 * us, {},
                  {.sequence = number + 3 * i + 2, .fwd_thread = 1});
        thread.op("autograd::engine::evaluate_function: TBackward0", 2 * us, {},
                  {.sequence = number + 3 * i, .fwd_thread = 1});
      }
    });
    run.traces[0].metadata.push_back({"stepscope_anomaly_mode", "true"});
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "debug_mode");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return fast_end(*found->gain);
  };
  const double now = 12 * 307 + 48;
  CHECK(job(true) == doctest::Approx(at_most(now / (12 * (2 + 2 + 2) + 48))).epsilon(0.02));
  // Without a number of its own the clone is what carried that of `t`, whose own node it did not make.
  CHECK(job(false) < 0.2 * job(true));
}

TEST_CASE("advice: a model under no_grad in some of the steps is evaluation, in all of them it is the method") {
  const auto job = [](int each, bool frames = false) {
    int step = 0;
    return run_of(
        [&, step](Thread& thread) mutable {
          thread.op("aten::mm", 4 * ms, {}, {.sequence = 7, .dims = kTwoSquares});
          thread.op("autograd::engine::evaluate_function: MmBackward0", 3 * ms, {}, {.sequence = 7, .fwd_thread = 1});
          if (step++ % each != 0) return;
          thread.op("aten::mm", 6 * ms, {}, {.dims = kTwoSquares});
          thread.op("aten::argmax", 1 * ms, {}, {.dims = kSquare});
        },
        frames);
  };
  CHECK(find(advice_of(job(3)), "evaluation_in_loop") != nullptr);
  Run with_source = job(3, true);
  with_source.stack_steps[0].code = {{"train.py", 10, "def evaluate", 10},
                                     {"train.py", 10, "eval", 11},
                                     {"train.py", 30, "__next__", 31},
                                     {"train.py", 30, "evaluate", 44}};
  const Answer placed = advice_of(with_source);
  REQUIRE(find(placed, "evaluation_in_loop") != nullptr);
  CHECK(find(placed, "evaluation_in_loop")->where.line == 44);
  with_source.stack_steps[0].code = {{"train.py", 10, "def collect", 10}, {"train.py", 30, "collect", 44}};
  CHECK(find(advice_of(with_source), "evaluation_in_loop") == nullptr);  // moves in a game, say, which it trains on
  CHECK(find(advice_of(job(1)), "evaluation_in_loop") == nullptr);
}

TEST_CASE("advice: in each step the model is set to evaluate the batch that it learned from, another batch is none") {
  const auto job = [](std::string_view evaluated, std::string_view model = "net", bool in_main = false) {
    const std::vector<std::string> main{"train.py(30): main"}, scores{"train.py(30): main", "train.py(10): scores"};
    Run run = run_of([&](Thread& thread) {
      thread.begin_range();
      thread.op("aten::mm", 4 * ms, main, {.sequence = 7, .dims = kTwoSquares});
      thread.end_range("stepscope.module: net (Net)");
      thread.op("autograd::engine::evaluate_function: MmBackward0", 3 * ms, main, {.sequence = 7, .fwd_thread = 1});
      thread.begin_range();
      thread.op("aten::mm", 4 * ms, scores, {.dims = evaluated});
      thread.end_range("stepscope.module: " + std::string(model) + " (Net)");
      thread.op("aten::argmax", 1 * ms, scores, {.dims = kSquare});
      thread.op("aten::randint", 4 * ms, main);  // of the next batch
    });
    run.stack_steps[0].code = {{"train.py", 10, "def scores", 10},
                               {"train.py", in_main ? 30 : 10, "eval", in_main ? 30 : 11},
                               {"train.py", 30, "__next__", 31},
                               {"train.py", 30, "scores", 44}};
    return advice_of(run);
  };
  const Answer answer = job(kTwoSquares);
  const Finding* found = find(answer, "evaluation_in_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 44);
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 11)).epsilon(0.02));
  CHECK(find(job(kTwoSquares, "net", true), "evaluation_in_loop") == nullptr);  // set once, for all steps
  CHECK(find(job(kTwoSquares, "teacher"), "evaluation_in_loop") == nullptr);
  CHECK(find(job("[[64, 256], [256, 256]]"), "evaluation_in_loop") == nullptr);  // a quarter of it, as moves in a game
}

TEST_CASE("advice: what recording costs is no time of the steps where other steps are known") {
  Run run = run_of(
      [](Thread& thread) {
        for (int i = 0; i < 500; i++) thread.op("aten::add", 4 * us), thread.code(4 * us);
        thread.code(3 * ms);
      },
      false);
  // 7 ms as recorded; the other steps take 6.
  run.traces[0].clock_base_ns = 0;
  Trace history;
  const std::int64_t far_ns = 3600 * std::int64_t{1000} * ms;
  for (int i = 0; i < 60; i++) {
    history.steps.push_back(
        {.name = "step", .number = i, .start_ns = far_ns + i * 6 * ms, .end_ns = far_ns + (i + 1) * 6 * ms});
  }
  run.history.push_back(std::move(history));
  const Answer answer = advice_of(run);
  const Scalar *step = answer.scalar("step_ns"), *cost = answer.scalar("recording_ns");
  REQUIRE(step != nullptr);
  CHECK(std::get<std::int64_t>(step->value) == doctest::Approx(6 * ms).epsilon(0.01));
  CHECK(std::get<std::int64_t>(cost->value) == doctest::Approx(1 * ms).epsilon(0.05));
}

TEST_CASE("advice: what recording costs a service is known by its forward passes") {
  Run run = run_of(
      [](Thread& thread) {
        thread.begin_range();
        for (int i = 0; i < 500; i++) thread.op("aten::add", 4 * us), thread.code(8 * us);
        thread.end_range("forward");
      },
      false);
  run.traces[0].clock_base_ns = 0;
  const auto job = [&](std::int64_t free_ns) {
    TraceFixture marks;
    const TrackId lane = marks.host("1");
    const auto pass = [&](std::int64_t at_ns, std::int64_t ns) {
      marks.annotation(lane, "forward", at_ns, ns);
      marks.trace.slices.phase.push_back(static_cast<std::uint8_t>(Phase::forward));
    };
    for (int i = 0; i < 4; i++) pass(i * 6 * ms, 6 * ms);
    const std::int64_t far_ns = 3600 * std::int64_t{1000} * ms;
    for (int i = 0; i < 60; i++) pass(far_ns + i * 6 * ms, free_ns);
    run.history.clear();
    run.history.push_back(std::move(marks.trace));
    return std::get<std::int64_t>(advice_of(run).scalar("step_ns")->value);
  };
  CHECK(job(4 * ms) == doctest::Approx(4 * ms).epsilon(0.02));
  CHECK(job(6 * ms) == 6 * ms);
}

TEST_CASE("advice: what hooks take between two steps is no time of the program") {
  Run run = run_of(
      [](Thread& thread) {
        thread.op("aten::mm", 6 * ms, {}, {.dims = kTwoSquares});
        thread.code(3 * ms);
      },
      false);
  const auto step_ns = [&] { return std::get<std::int64_t>(advice_of(run).scalar("step_ns")->value); };
  CHECK(step_ns() == 9 * ms);
  run.traces[0].metadata.push_back({"stepscope_boundary_ns", "2000000"});
  CHECK(step_ns() == 9 * ms - 3 * 2 * ms / 4);  // between four steps there are three
  run.traces[0].metadata.back().json = "-5";
  CHECK(step_ns() == 9 * ms);
}

TEST_CASE("advice: what the first recorded step alone has at its beginning is the recorder's") {
  const auto step_ns = [](int longer, bool ours = true) {
    int step = 0;
    Run run = run_of(
        [&](Thread& thread) {
          thread.code(step == longer ? 6 * ms : 2 * ms);
          thread.op("aten::mm", 6 * ms, {}, {.dims = kTwoSquares});
          thread.code(step++ == longer + 10 ? 6 * ms : 2 * ms);
        },
        false);
    if (ours) run.traces[0].metadata.push_back({"stepscope_boundary_ns", "0"});
    return std::get<std::int64_t>(advice_of(run).scalar("step_ns")->value);
  };
  CHECK(step_ns(0) == 10 * ms);
  CHECK(step_ns(0, false) == 11 * ms);
  CHECK(step_ns(1) == 11 * ms);
  CHECK(step_ns(-10) == 11 * ms);  // at the end of the first
}

}  // namespace
}  // namespace stepscope::diagnose
