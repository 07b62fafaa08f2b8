// Causes that the program's own source tells apart: what loops work for, what is only written down, what is looked at.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

const std::vector<std::string> kMain{"train.py(30): main"};

TEST_CASE("advice: tensors looked through for NaN, of which a number is read, and a mask that is used") {
  const auto job = [](std::string_view then) {
    return advice_of(run_of([&](Thread& thread) {
      const std::vector<std::string> hook{"train.py(30): main", "train.py(10): check"};
      thread.op("aten::mm", 8 * ms, kMain, {.dims = kTwoSquares});
      thread.op("aten::isnan", 1 * ms, hook, {.dims = kSquare});
      thread.op("aten::any", 500 * us, hook, {.dims = kSquare});
      thread.op(then, 10 * us, hook, {.dims = "[[]]"});
      thread.op("aten::relu", 490 * us, kMain, {.dims = kSquare});
    }));
  };
  const Answer answer = job("aten::is_nonzero");
  const Finding* found = find(answer, "value_checks");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "check");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10 / 8.49)).epsilon(0.01));
  CHECK(find(job("aten::where"), "value_checks") == nullptr);
  // The loss alone, and how many of them have labels.
  const auto other = [](std::string_view dims, std::string_view join) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::mm", 8 * ms, kMain, {.dims = kTwoSquares});
      thread.op("aten::isnan", 1 * ms, kMain, {.dims = dims});
      thread.op("aten::bitwise_not", 500 * us, kMain, {.dims = dims});
      thread.op(join, 500 * us, kMain, {.dims = dims});
      thread.op("aten::item", 10 * us, kMain, {.dims = "[[]]"});
    }));
  };
  CHECK(find(other(kSquare, "aten::all"), "value_checks") != nullptr);
  CHECK(find(other("[[]]", "aten::all"), "value_checks") == nullptr);
  CHECK(find(other(kSquare, "aten::sum"), "value_checks") == nullptr);
}

TEST_CASE("advice: a journal is kept in short stretches too, which are no loop over parameters") {
  const auto job = [](std::string_view called) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, kMain, {.dims = kTwoSquares});
      for (int i = 0; i < 20; i++) {
        const std::vector<std::string> code{"train.py(30): main", "train.py(10): note"};
        thread.op("aten::detach", 5 * us, code, {.dims = "[[" + std::to_string(i + 1) + "]]"});
        thread.code(95 * us, code);
      }
      thread.op("aten::relu", 100 * us, kMain, {.dims = kSquare});
    });
    run.stack_steps[0].code = {{"train.py", 10, "def note", 10},
                               {"train.py", 10, std::string(called), 12},
                               {"train.py", 30, "__next__", 35},
                               {"train.py", 30, "note", 36}};
    return advice_of(run);
  };
  const Answer answer = job("write");
  REQUIRE_FALSE(answer.findings.empty());
  CHECK(answer.findings[0].id == "logging_in_loop");
  CHECK(answer.findings[0].where.line == 36);
  REQUIRE(answer.findings[0].gain);
  CHECK(fast_end(*answer.findings[0].gain) == doctest::Approx(at_most(6.1 / 4.1)).epsilon(0.03));
  CHECK(find(job("add"), "logging_in_loop") == nullptr);
  // The program's own write() may write to a tensor; one that hands on to a file's keeps a journal.
  const auto own_write = [&](std::string_view called) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, kMain, {.dims = kTwoSquares});
      thread.code(2 * ms, {"train.py(30): main", "train.py(10): note"});
      thread.op("aten::relu", 100 * us, kMain, {.dims = kSquare});
    });
    run.stack_steps[0].code = {{"train.py", 10, "def note", 10},  {"train.py", 10, "write", 12},
                               {"train.py", 20, "def write", 20}, {"train.py", 20, std::string(called), 22},
                               {"train.py", 30, "def main", 30},  {"train.py", 30, "note", 36}};
    return advice_of(run);
  };
  CHECK(find(own_write("write"), "logging_in_loop") != nullptr);
  CHECK(find(own_write("writerow"), "logging_in_loop") != nullptr);
  CHECK(find(own_write("index_put"), "logging_in_loop") == nullptr);
  // What a library's model does below a function that writes is no journal of it.
  Run serves = run_of([](Thread& thread) {
    const std::vector<std::string> in_model{"train.py(10): answer", "nn.Module: Llama_0"};
    for (int i = 0; i < 20; i++) {
      thread.op(i % 2 == 0 ? "aten::mm" : "aten::relu", 200 * us, in_model, {.dims = kTwoSquares});
      thread.code(95 * us, in_model);
    }
  });
  serves.stack_steps[0].code = {{"train.py", 10, "def answer", 10}, {"train.py", 10, "write", 12}};
  CHECK(find(advice_of(serves), "logging_in_loop") == nullptr);
}

TEST_CASE("advice: a model that is loaded in each step, with the operators that put it in place") {
  // The source calls both, as where training goes on from a checkpoint; what is in the steps tells.
  const auto job = [](std::string_view reads, std::string_view puts) {
    Run run = run_of([&](Thread& thread) {
      const std::vector<std::string> get{"train.py(30): main", "train.py(10): get"};
      std::vector<std::string> first = get, second = get;
      first.emplace_back(reads);
      second.emplace_back(puts);
      thread.op("aten::mm", 5 * ms, kMain, {.dims = kTwoSquares});
      thread.code(2 * ms, first);
      thread.op("aten::copy_", 1 * ms, second, {.dims = kTwoSquares});
      thread.code(1 * ms, second);
      thread.op("aten::relu", 1 * ms, kMain, {.dims = kSquare});
    });
    run.stack_steps[0].code = {{"train.py", 10, "def get", 10},
                               {"train.py", 10, "load", 12},
                               {"train.py", 10, "load_state_dict", 13},
                               {"train.py", 10, "save", 14},
                               {"train.py", 30, "def main", 30}};
    return advice_of(run);
  };
  const std::string load = "torch/serialization.py(1275): load",
                    puts = "torch/nn/modules/module.py(2411): load_state_dict";
  const Answer answer = job(load, puts);
  const Finding* found = find(answer, "model_loaded_again");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "get");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 6.0)).epsilon(0.02));
  CHECK(find(answer, "checkpoint_in_loop") == nullptr);
  const Answer data = job(load, "torch/functional.py(10): stack");
  CHECK(find(data, "model_loaded_again") == nullptr);
  CHECK(find(data, "file_io") != nullptr);
  CHECK(find(job("train.py(50): follow", puts), "model_loaded_again") == nullptr);  // from model to model
}

TEST_CASE("advice: a loop that mostly works something out itself is no loop of operators") {
  const auto job = [](std::int64_t code_ns) {
    const Answer answer = advice_of(run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, kMain, {.dims = kTwoSquares});
      for (int i = 0; i < 16; i++) {
        const std::vector<std::string> code{"train.py(30): main", "train.py(10): encode"};
        thread.op("aten::lift_fresh", 100 * us, code, {.dims = "[[8]]"});
        thread.code(code_ns, {"train.py(30): main", "train.py(10): encode", "train.py(5): features"});
      }
      thread.op("aten::stack", 100 * us, kMain);
    }));
    return answer.findings.empty() ? std::string() : answer.findings[0].id;
  };
  CHECK(job(500 * us) == "python_in_step");
  CHECK(job(5 * us) == "per_sample_loop");
}

TEST_CASE("advice: a loop is where its turns call, of two places that in the inner one") {
  Run run = run_of([](Thread& thread) {
    thread.call(kMain, [&] {
      thread.op("aten::mm", 1 * ms);
      for (int i = 0; i < 16; i++) {
        thread.op("aten::slice", 60 * us, {}, {.dims = "[[8]]"});  // the longest, which calls nothing
        thread.op("aten::abs", 10 * us, {"train.py(10): loss"}, {.dims = "[[8]]"});
      }
      thread.op("aten::stack", 20 * us);
    });
  });
  run.stack_steps[0].code = {{"train.py", 30, "__next__", 33},   {"train.py", 30, "(turns) 40", 33},
                             {"train.py", 30, "loss", 36},       {"train.py", 30, "__next__", 38},
                             {"train.py", 30, "(turns) 39", 38}, {"train.py", 30, "loss", 39},
                             {"train.py", 30, "__next__", 50},   {"train.py", 30, "(turns) 51", 50},
                             {"train.py", 30, "loss", 51},       {"train.py", 10, "def loss", 10}};
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "per_sample_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "main");
  CHECK(found->where.line == 39);
}

TEST_CASE("advice: attention is where its softmax is called, a loader where it is made with its workers") {
  Run by_hand = run_of([&](Thread& thread) {
    const std::vector<std::string> scores{"train.py(30): main", "train.py(10): scores"};
    thread.op("aten::matmul", 4 * ms, scores, {.dims = "[[8, 512, 64], [8, 64, 512]]"});
    thread.op("aten::softmax", 3 * ms,
              {"train.py(30): main", "train.py(10): scores", "torch/nn/functional.py(2000): softmax"},
              {.dims = "[[8, 512, 512], [], []]"});
    thread.op("aten::matmul", 4 * ms, scores, {.dims = "[[8, 512, 512], [8, 512, 64]]"});
  });
  by_hand.stack_steps[0].code = {{"train.py", 10, "def scores", 10}, {"train.py", 10, "softmax", 13}};
  const Answer written = advice_of(by_hand);
  const Finding* attention = find(written, "attention_by_hand");
  REQUIRE(attention != nullptr);
  CHECK(attention->where.line == 13);

  Run loads = run_of([](Thread& thread) {
    thread.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 6 * ms);
    thread.op("aten::mm", 4 * ms, kMain);
  });
  const auto line = [&](std::vector<CodeCall> code) {
    loads.stack_steps[0].code = std::move(code);
    const Answer answer = advice_of(loads);
    const Finding* found = find(answer, "loader_in_main_process");
    REQUIRE(found != nullptr);
    return found->where.line;
  };
  CHECK(line({{"train.py", 20, "(workers)", 24}}) == 24);
  CHECK(line({{"train.py", 20, "(workers)", 24}, {"train.py", 20, "(workers)", 27}}) != 24);
}

TEST_CASE("advice: of a loader in the main process the function is named that makes its batches") {
  const auto finding = [](bool below_the_loader) {
    const std::string reader = "torch/utils/data/dataloader.py(700): __next__";
    const std::string wrapper = "stepscope/hooks/_stepscope_hooks/phases.py(121): __next__";  // ours, around it
    const Run run = run_of([&](Thread& thread) {
      std::vector<std::string> code{"train.py(30): main", wrapper, reader, "train.py(10): parse"};
      if (!below_the_loader) code.erase(code.begin() + 1, code.begin() + 3);
      thread.begin_range();
      thread.code(1 * ms, {"train.py(30): main", wrapper, reader});
      thread.op("aten::empty", ms / 100, code);
      thread.code(4 * ms, code);
      thread.op("aten::stack", ms,
                {"train.py(30): main", wrapper, reader, "torch/utils/data/_utils/collate.py(9): collate"});
      thread.code(us);
      thread.end_range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      thread.op("aten::mm", 4 * ms, kMain);
    });
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "loader_in_main_process");
    REQUIRE(found != nullptr);
    return *found;
  };
  const Finding named = finding(true);
  CHECK(named.sentence.ends_with("waits: parse"));
  CHECK(named.evidence.back().text == "Most of it is in parse, train.py:10");
  CHECK(finding(false).sentence.ends_with("waits"));  // a function that the loader does not call
}

}  // namespace
}  // namespace stepscope::diagnose
