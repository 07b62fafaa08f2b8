// Causes on traces made by hand: what is found, where, what it is worth, and what is no cause.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/steps_fixture.h"
#include "model/settings.h"

namespace stepscope::diagnose {
namespace {

TEST_CASE("advice: code between operators has its function, its line, and the time that it takes as gain") {
  const Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 5 * ms, {"train.py(30): main"});
    thread.code(5 * ms, {"train.py(30): main", "train.py(10): rarest", "<built-in function sorted>"});
    thread.op("aten::add", 10 * ms, {"train.py(30): main"});
  });
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "python_in_step");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "rarest");
  CHECK(found->where.file == "train.py");
  CHECK(found->where.line == 14);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(20.0 / 15.1)).epsilon(0.01));
  CHECK(found->gain->speedup_low == doctest::Approx(20.0 / 16).epsilon(0.01));
}

TEST_CASE("advice: a comprehension is a part of the function around it") {
  Run run = run_of([](Thread& thread) {
    const std::vector<std::string> rarest{"train.py(30): main", "train.py(10): rarest"};
    std::vector<std::string> inside = rarest;
    inside.emplace_back("train.py(12): <listcomp>");
    thread.op("aten::mm", 5 * ms, {"train.py(30): main"});
    thread.code(3 * ms, rarest);
    thread.op("aten::t", 10 * us, {"train.py(30): main"});
    thread.code(6 * ms, inside);
    thread.op("aten::relu", 10 * ms, {"train.py(30): main"});
    inside.emplace_back("<built-in function hash>");
    thread.code(4 * ms, inside);
  });
  run.stack_steps[0].code = {
      {"train.py", 10, "def rarest", 10}, {"train.py", 10, "hash", 13}, {"train.py", 30, "rarest", 44}};
  const Answer answer = advice_of(run);
  CHECK(std::count_if(answer.findings.begin(), answer.findings.end(),
                      [](const Finding& one) { return one.id == "python_in_step"; }) == 1);
  const Finding* found = find(answer, "python_in_step");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "rarest");
  CHECK(found->where.line == 12);  // where it was longest: the comprehension's own work
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(28.0 / 15)).epsilon(0.02));
}

TEST_CASE("advice: of two calls of one name that in the loop is the place") {
  Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 15 * ms);
    thread.code(5 * ms, {"train.py(10): main", "<built-in function sorted>"});
    thread.op("aten::add", 1 * ms);
  });
  const auto line = [&] {
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "python_in_step");
    REQUIRE(found != nullptr);
    return found->where.line;
  };
  auto& code = run.stack_steps[0].code;
  code = {{"train.py", 10, "sorted", 12}, {"train.py", 10, "__next__", 14}, {"train.py", 10, "sorted", 16}};
  CHECK(line() == 16);
  code = {{"train.py", 10, "sorted", 12}, {"train.py", 10, "__next__", 14}};
  CHECK(line() == 12);
  code = {{"train.py", 10, "sorted", 12}, {"train.py", 10, "sorted", 16}};
  CHECK(line() == 12);
}

TEST_CASE("advice: work of a model that the program calls is where it calls it") {
  Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 10 * ms, {"train.py(36): main", "nn.Module: Net_0"},
              {.dims = "[[64,64],[64,64]]", .types = R"(["double","double"])"});
  });
  run.stack_steps[0].code = {{"train.py", 26, "(calls) Net", 32}, {"train.py", 26, "step", 36}};
  const Answer answer = advice_of(run);
  REQUIRE(find(answer, "float64") != nullptr);
  CHECK(find(answer, "float64")->where.line == 32);
}

TEST_CASE("advice: what the code does decides the cause") {
  const auto cause_of = [](std::vector<std::string> inner) {
    const Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 5 * ms);
      std::vector<std::string> code{"train.py(30): main"};
      code.insert(code.end(), inner.begin(), inner.end());
      thread.code(5 * ms, code);
      thread.op("aten::add", 5 * ms);
    });
    const Answer answer = advice_of(run);
    return answer.findings.size() == 1 ? answer.findings[0].id : std::string();
  };
  CHECK(cause_of({}) == "python_in_step");
  // Which no change of the program's code takes away; its own optimizer it may well change.
  CHECK(cause_of({"torch/optim/optimizer.py(516): wrapper", "torch/optim/sgd.py(124): _init_group"}).empty());
  CHECK(cause_of({"torch/optim/optimizer.py(516): wrapper", "lion.py(12): step"}) == "python_in_step");
  CHECK(cause_of({"torch/serialization.py(940): save"}) == "checkpoint_in_loop");
  CHECK(cause_of({"torch/serialization.py(1275): load"}) == "file_io");
  CHECK(cause_of({"torch/distributed/distributed_c10d.py(3013): _object_to_tensor", "pickle.py(1): dump"}) ==
        "object_collectives");
  CHECK(cause_of({"<built-in function print>"}) == "logging_in_loop");
  CHECK(cause_of({"socket.py(706): readinto"}) == "network_io");
  CHECK(cause_of({"<built-in method read of _io.BufferedReader object at 0x7f>"}) == "file_io");
  CHECK(cause_of({"<built-in function collect>"}) == "garbage_collection");
  CHECK(cause_of({"<built-in function sleep>"}) == "sleeping_in_loop");
  CHECK(cause_of({"tenacity/__init__.py(336): wraps", "<built-in function sleep>"}) == "rate_limited");
  // What a training waits for is its own.
  CHECK(cause_of({"queue.py(154): get", "<built-in method acquire of _thread.lock object at 0x7f>"}) ==
        "python_in_step");
}

TEST_CASE("advice: a thread of a pool that waits does no work of the program") {
  const Run run = run_of([](Thread& thread) {
    thread.op("aten::mm", 5 * ms, {"serve.py(30): answer"});
    thread.code(5 * ms, {"threading.py(1002): _bootstrap", "concurrent/futures/thread.py(83): _worker"});
    thread.op("aten::add", 5 * ms, {"serve.py(30): answer"});
  });
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "waits_for_requests");
  REQUIRE(found != nullptr);
  CHECK_FALSE(found->gain);
  CHECK(find(answer, "python_in_step") == nullptr);
}

TEST_CASE("advice: without frames the code between operators has no place, and that is said") {
  const Run run = run_of(
      [](Thread& thread) {
        thread.op("aten::mm", 5 * ms);
        thread.code(5 * ms);
        thread.op("aten::add", 5 * ms);
      },
      false);
  const Answer answer = advice_of(run);
  CHECK(find(answer, "python_in_step") == nullptr);
  const Finding* found = find(answer, "unrecorded_code");
  REQUIRE(found != nullptr);
  CHECK(!found->where.file);
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low == doctest::Approx(1));
  CHECK(found->gain->speedup_high == doctest::Approx(15.0 / 10.1).epsilon(0.01));
  REQUIRE(answer.notes.size() == 3);  // nor sizes, nor telemetry
  CHECK(answer.notes[0].starts_with("No Python frames are recorded"));
}

TEST_CASE("advice: float32 has other convolutions than float64, halves complex numbers too, and needs no conversion") {
  const auto gain = [](std::string_view name, std::string_view types) {
    const Answer answer = advice_of(run_of([&](Thread& thread) {
      thread.op(name, 10 * ms, {}, {.dims = "[[64,64],[64,64]]", .types = std::string(types)});
      thread.op("aten::mm", 10 * ms, {}, {.dims = "[[64,64],[64,64]]", .types = R"(["float","float"])"});
    }));
    const Finding* found = find(answer, "float64");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return *found->gain;
  };
  const auto convolution = gain("aten::_slow_conv2d_forward", R"(["double","double"])");
  CHECK(convolution.speedup_low == doctest::Approx(20.0 / 14).epsilon(0.01));
  CHECK(fast_end(convolution) == doctest::Approx(20.0 / 11.5).epsilon(0.02));
  CHECK(gain("aten::mul", R"(["c10::complex<double>","c10::complex<double>"])").speedup_high ==
        doctest::Approx(20.0 / 15).epsilon(0.01));
  // 12 to 33 % of an LSTM, word by word as it is in float64; a packed one is so in any type, and halves.
  const auto lstm = [](std::string_view given) {
    const Answer answer = advice_of(run_of([&](Thread& thread) {
      const OpIds ids{.dims = given, .types = R"(["double","TensorList"])"};
      thread.nested("aten::lstm", "aten::sigmoid", 10 * ms, ids, {.dims = "[[64,64]]", .types = R"(["double"])"});
      thread.op("aten::mm", 10 * ms, {}, {.dims = "[[64,64],[64,64]]", .types = R"(["float","float"])"});
    }));
    return find(answer, "float64")->gain.value_or(Gain()).speedup_low;
  };
  CHECK(lstm("[[32,96,64],[]]") == doctest::Approx(20.0 / 13.3).epsilon(0.02));
  CHECK(lstm("[[2000,64],[]]") == doctest::Approx(20.0 / 15).epsilon(0.02));
  const auto copy = gain("aten::copy_", R"(["double","float"])");
  CHECK(copy.speedup_low == doctest::Approx(20.0 / 15).epsilon(0.01));
  CHECK(fast_end(copy) > 1.9);
}

TEST_CASE("advice: half of float64 is gone in float32, and small calls are as they were") {
  const OpIds doubles{.dims = "[[64,64],[64,64]]", .types = R"(["double","double"])"};
  const OpIds numbers{.dims = "[[64,64],[]]", .types = R"(["float","double"])"};
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::mm", 10 * ms, {"train.py(30): main"}, doubles);
    thread.op("aten::mul", 10 * ms, {"train.py(30): main"}, numbers);
  });
  const Answer answer = advice_of(run);
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].id == "float64");
  CHECK(answer.findings[0].where.op == "aten::mm");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_high == doctest::Approx(20.0 / 15).epsilon(0.01));
  // It is changed where the program asks for it; where it does so more than once, nobody knows which is meant.
  const auto place = [&](std::vector<CodeCall> code) {
    run.stack_steps.at(0).code = std::move(code);
    return advice_of(run).findings.at(0).where;
  };
  CHECK(place({{"data.py", 1, "", 0}, {"data.py", 8, "(float64)", 9}}).file == "data.py");
  CHECK(place({{"data.py", 8, "(float64)", 9}}).line == 9);
  CHECK(place({{"data.py", 8, "(float64)", 9}, {"data.py", 8, "(float64)", 12}}).line != 9);
  CHECK(place({{"data.py", 8, "(float64)", 9}, {"data.py", 8, "(float64)", 12}, {"data.py", 8, "(all float64)", 12}})
            .line == 12);
}

TEST_CASE("advice: a loop over samples, over parameters, and layers that are none") {
  const auto step_of = [](bool layers, bool sizes) {
    return [layers, sizes](Thread& thread) {
      thread.op("aten::mm", 1 * ms, {"train.py(30): main"});
      for (int i = 0; i < 16; i++) {
        std::vector<std::string> code{"train.py(30): main", "train.py(10): loss"};
        if (layers) code.push_back("nn.Module: Block_" + std::to_string(i));
        const std::string dims = sizes ? "[[" + std::to_string(i + 1) + "]]" : "[[8]]";
        thread.op("aten::sub", 10 * us, code, {.dims = dims, .types = R"(["float"])"});
        thread.op("aten::abs", 10 * us, code, {.dims = dims, .types = R"(["float"])"});
        thread.op("aten::sum", 10 * us, code, {.dims = dims, .types = R"(["float"])"});
      }
      thread.op("aten::stack", 20 * us, {"train.py(30): main"});
    };
  };
  const Answer samples = advice_of(run_of(step_of(false, false)));
  REQUIRE(samples.findings.size() == 1);
  CHECK(samples.findings[0].id == "per_sample_loop");
  CHECK(samples.findings[0].where.function == "loss");
  REQUIRE(samples.findings[0].gain);
  // 16 turns of 30 us become one: 1500 us become 1050 us.
  CHECK(fast_end(*samples.findings[0].gain) == doctest::Approx(at_most(1500.0 / 1050)).epsilon(0.01));

  const Answer parameters = advice_of(run_of(step_of(false, true)));
  REQUIRE(parameters.findings.size() == 1);
  CHECK(parameters.findings[0].id == "per_parameter_loop");

  CHECK(advice_of(run_of(step_of(true, false))).findings.empty());

  // By its source each turn needs what the one before made.
  Run carries = run_of(step_of(false, false));
  carries.stack_steps[0].code = {{"train.py", 10, "__next__", 11}, {"train.py", 10, "(carries) 15", 11}};
  CHECK(advice_of(carries).findings.empty());
}

TEST_CASE("advice: a loop whose turns differ by a condition is one nevertheless, and source without a loop is none") {
  const auto job = [](std::string_view next) {
    const std::vector<std::string> main{"train.py(30): main"}, loss{"train.py(30): main", "train.py(10): loss"};
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 2 * ms, main);
      thread.call(loss, [&] {
        for (int i = 0; i < 60; i++) {
          thread.op("aten::gt", 10 * us, {}, {.dims = "[[], []]"});
          if (i % 7 == 2 || i % 5 == 1) thread.op("aten::sub", 10 * us, {}, {.dims = "[[], []]"});
          if (i % 11 == 3) thread.op("aten::neg", 10 * us, {}, {.dims = "[[]]"});
        }
      });
      thread.op("aten::relu", 400 * us, main);
    });
    run.stack_steps[0].code = {
        {"train.py", 10, "def loss", 10}, {"train.py", 10, std::string(next), 12}, {"train.py", 30, "loss", 44}};
    return advice_of(run);
  };
  const Answer answer = job("__next__");
  const Finding* found = find(answer, "per_sample_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "loss");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.2);
  CHECK(find(job("gt"), "per_sample_loop") == nullptr);
}

TEST_CASE("advice: a file that takes the place of another is part of saving it") {
  const auto job = [](std::string_view called, std::string_view busy) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 6 * ms, {"train.py(30): main"});
      thread.code(4 * ms, {"train.py(30): main", "train.py(10): keep", std::string(busy)});
      thread.op("aten::relu", 400 * us, {"train.py(30): main"});
    });
    run.stack_steps[0].code = {
        {"train.py", 10, "def keep", 10}, {"train.py", 10, std::string(called), 12}, {"train.py", 10, "replace", 13}};
    return advice_of(run);
  };
  const Answer answer = job("save", "<built-in function replace>");
  const Finding* found = find(answer, "checkpoint_in_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 12);
  CHECK(find(job("split", "<built-in function replace>"), "checkpoint_in_loop") == nullptr);
  CHECK(find(job("save", "<built-in method replace of str object at 0x7f>"), "checkpoint_in_loop") == nullptr);
}

TEST_CASE("advice: what is done too often is where the loop calls it, but not where it calls each of its callbacks") {
  const auto line = [](std::string_view on_each) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 6 * ms, {"train.py(30): main"});
      thread.code(4 * ms, {"train.py(30): main", "train.py(10): keep", "torch/serialization.py(940): save"});
      thread.op("aten::relu", 400 * us, {"train.py(30): main"});
    });
    run.stack_steps[0].code = {{"train.py", 10, "def keep", 10}, {"train.py", 10, "save", 12},
                               {"train.py", 26, "def main", 26}, {"train.py", 26, "__next__", 31},
                               {"train.py", 26, "keep", 33},     {"train.py", 26, std::string(on_each), 33}};
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "checkpoint_in_loop");
    REQUIRE(found != nullptr);
    return found->where.line;
  };
  CHECK(line("(drops) keep") == 33);
  CHECK(line("(each) keep") == 12);
}

TEST_CASE("advice: code that took far less where its frames were recorded may not be what takes long") {
  const auto confidence = [](std::int64_t seen_ns) {
    int step = 0;
    const Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 5 * ms, {"train.py(30): main"});
      thread.code(step++ < 4 ? 5 * ms : seen_ns, {"train.py(30): main", "train.py(10): rarest"});
      thread.op("aten::add", 10 * ms, {"train.py(30): main"});
    });
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "python_in_step");
    REQUIRE(found != nullptr);
    CHECK((found->confidence_reason.find("5.0 ms") != std::string::npos) == (seen_ns < 1 * ms));
    return found->confidence;
  };
  CHECK(confidence(5 * ms) == "high");
  CHECK(confidence(2 * ms) == "high");
  CHECK(confidence(300 * us) == "medium");
}

TEST_CASE("advice: what a function makes that gives the same in each step could be kept") {
  const auto job = [](std::string_view said, bool same_sizes, bool learns = false) {
    std::int64_t step = 0;
    Run run = run_of([&](Thread& thread) {
      const std::vector<std::string> mask{"train.py(30): main", "train.py(10): mask"};
      const std::string sizes = "[[" + std::to_string(same_sizes ? 256 : 256 + step) + ", 256]]";
      thread.op("aten::exp", 4 * ms, mask, {.sequence = learns ? step : kAbsent, .dims = sizes});
      thread.code(1 * ms, mask);
      thread.op("aten::where", 3 * ms, mask, {.dims = sizes});
      thread.op("aten::mm", 12 * ms, {"train.py(30): main"}, {.sequence = 100 + step});
      if (learns) {
        thread.op("autograd::engine::evaluate_function: ExpBackward0", 1 * ms, {}, {.sequence = step, .fwd_thread = 1});
      }
      step++;
    });
    run.stack_steps[0].code = {{"train.py", 10, "def mask", 10},
                               {"train.py", 10, std::string(said), 10},
                               {"train.py", 26, "def main", 26},
                               {"train.py", 26, "mask", 34}};
    return advice_of(run);
  };
  const Answer answer = job("(constant)", true);
  const Finding* found = find(answer, "constant_in_steps");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "main");
  CHECK(found->where.line == 34);
  CHECK(found->sentence.find("mask()") != std::string::npos);
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(20.0 / 12)).epsilon(0.01));
  CHECK(find(job("(keeps)", true), "constant_in_steps") == nullptr);
  CHECK(find(job("(constant)", false), "constant_in_steps") == nullptr);       // of another size each time
  CHECK(find(job("(constant)", true, true), "constant_in_steps") == nullptr);  // of what learns
}

TEST_CASE("advice: what a function makes of the same could be kept if that is what it was given in two steps") {
  const auto job = [](std::string_view given) {
    std::int64_t step = 0;
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::div", 8 * ms, {"gcn.py(30): main", "gcn.py(10): normalized"}, {.dims = "[[256, 256]]"});
      thread.op("aten::mm", 12 * ms, {"gcn.py(30): main"}, {.sequence = 100 + step++});
    });
    run.stack_steps[0].code = {{"gcn.py", 10, "def normalized", 10},
                               {"gcn.py", 10, "(same)", 10},
                               {"gcn.py", 26, "def main", 26},
                               {"gcn.py", 26, "normalized", 34}};
    Trace history;
    history.steps.push_back({.name = "step", .number = 0, .start_ns = 0, .end_ns = 20 * ms});
    history.metadata.push_back({std::string(kGivenTheSame), std::string(given)});
    run.history.push_back(std::move(history));
    return advice_of(run);
  };
  const Answer answer = job(R"([["gcn.py", 10]])");
  const Finding* found = find(answer, "constant_in_steps");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 34);
  CHECK(found->confidence_reason.find("seen in two steps") != std::string::npos);
  CHECK(find(job(R"([["gcn.py", 12], ["other.py", 10]])"), "constant_in_steps") == nullptr);
  CHECK(find(job(R"({"gcn.py": 10})"), "constant_in_steps") == nullptr);
  CHECK(find(job("[[10], 3, [[]]]"), "constant_in_steps") == nullptr);
}

TEST_CASE("advice: what other functions change is the same as long as they do not run, in a job that does not learn") {
  const auto job = [](bool fills, bool learns) {
    std::int64_t step = 0;
    Run run = run_of([&](Thread& thread) {
      const std::string dims = "[[256, 256]]";
      if (fills) thread.op("aten::div", 1 * ms, {"index.py(30): main", "index.py(8): add"}, {.dims = dims});
      thread.op("aten::cat", 8 * ms, {"index.py(30): main", "index.py(10): rows"}, {.dims = dims});
      thread.op("aten::mm", 12 * ms, {"index.py(30): main"}, {.sequence = 100 + step});
      if (learns) {
        thread.op("autograd::engine::evaluate_function: MmBackward0", 1 * ms, {},
                  {.sequence = 100 + step, .fwd_thread = 1});
      }
      step++;
    });
    run.stack_steps[0].code = {{"index.py", 10, "def rows", 10},
                               {"index.py", 10, "(constant) unless add clear", 10},
                               {"index.py", 26, "def main", 26},
                               {"index.py", 26, "rows", 34}};
    return advice_of(run);
  };
  const Answer answer = job(false, false);
  const Finding* found = find(answer, "constant_in_steps");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 34);
  CHECK(find(job(true, false), "constant_in_steps") == nullptr);
  CHECK(find(job(false, true), "constant_in_steps") == nullptr);
}

TEST_CASE("advice: numbers that are made for a log alone") {
  const auto job = [](std::string_view as_called, std::string_view last) {
    const std::vector<std::string> main{"train.py(30): main"}, add{"train.py(30): main", "train.py(10): add"};
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 8 * ms, main);
      for (int i = 0; i < 4; i++) {
        thread.op("aten::histc", 500 * us, add);
        thread.op("aten::aminmax", 400 * us, add);
        thread.op("aten::item", 10 * us, add);
      }
      thread.op(last, 100 * us, add);
      thread.op("aten::relu", 300 * us, main);
    });
    run.stack_steps[0].code = {{"train.py", 10, "def add", 10}, {"train.py", 30, std::string(as_called), 44}};
    return advice_of(run);
  };
  const Answer answer = job("(drops) add", "aten::mean");
  const Finding* found = find(answer, "logging_in_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 44);
  CHECK(found->where.function == "main");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(12.04 / 8.3)).epsilon(0.02));
  CHECK(find(job("add", "aten::mean"), "logging_in_loop") == nullptr);           // its result is used
  CHECK(find(job("(drops) add", "aten::copy_"), "logging_in_loop") == nullptr);  // it writes to a tensor
}

TEST_CASE("advice: tensors that are turned into text, and the function that has it done") {
  const auto job = [](std::string_view library) {
    const std::vector<std::string> report{"train.py(30): main", "train.py(10): report"};
    std::vector<std::string> inner = report;
    inner.insert(inner.end(), {"torch/_tensor.py(590): __format__", std::string(library) + "(712): _str"});
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::mm", 8 * ms, {"train.py(30): main"});
      for (int i = 0; i < 8; i++) {
        thread.op("aten::ne", 300 * us, inner);
        thread.op("aten::item", 200 * us, inner);
      }
      thread.op("aten::relu", 400 * us, report);
    });
    run.stack_steps[0].code = {
        {"train.py", 10, "def report", 10}, {"train.py", 10, "__format__", 14}, {"train.py", 30, "report", 44}};
    return advice_of(run);
  };
  const Answer answer = job("torch/_tensor_str.py");
  const Finding* found = find(answer, "logging_in_loop");
  REQUIRE(found != nullptr);
  CHECK(found->sentence == "Tensors are turned into text among the steps");
  CHECK(found->where.file == "train.py");
  CHECK(found->where.function == "report");
  CHECK(found->where.line == 14);
  CHECK_FALSE(found->where.op);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(12.4 / 8.4)).epsilon(0.02));
  CHECK(found->gain->speedup_low == doctest::Approx(12.4 / 8.48).epsilon(0.01));
  CHECK(find(job("torch/functional.py"), "logging_in_loop") == nullptr);
}

TEST_CASE("advice: the partition adds up to the steps, and what two findings share is told") {
  const Run run = run_of([](Thread& thread) {
    thread.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 4 * ms);
    thread.op("aten::mm", 8 * ms, {"train.py(30): main"}, {.dims = "[[8]]", .types = R"(["double"])"});
    thread.code(4 * ms, {"train.py(30): main"});
    thread.op("aten::add", 4 * ms, {"train.py(30): main"});
  });
  const Answer answer = advice_of(run);
  const Table* partition = answer.table("partition");
  REQUIRE(partition != nullptr);
  // What others read by their number.
  using namespace diagnose::partition;
  for (const auto& column :
       {std::pair(kRank, "rank"), std::pair(kPart, "part"), std::pair(kPhase, "phase"), std::pair(kFinding, "finding"),
        std::pair(kTime, "time_ns"), std::pair(kShare, "share"), std::pair(kExplainedBy, "explained_by")}) {
    CHECK(partition->columns[column.first].name == column.second);
  }
  std::int64_t sum = 0;
  std::set<Value> parts;
  for (const auto& row : partition->rows) {
    sum += std::get<std::int64_t>(row[kTime]);
    parts.insert(row[kPart]);
  }
  CHECK(parts == std::set<Value>{std::string(diagnose::part::kDataLoader), std::string(diagnose::part::kOperators),
                                 std::string(diagnose::part::kBetweenOperators)});
  CHECK(sum == std::get<std::int64_t>(answer.scalar("step_ns")->value));
  CHECK(std::get<double>(answer.scalar("explained_share")->value) == doctest::Approx(0.8));
  REQUIRE(answer.findings.size() == 3);
  for (std::size_t i = 1; i < 3; i++) {
    CHECK(answer.findings[i - 1].gain->speedup_high >= answer.findings[i].gain->speedup_low);
  }
  CHECK(find(answer, "loader_in_main_process") != nullptr);
}

TEST_CASE("advice: code between the passes that an optimizer calls is none of the optimizer's") {
  const Answer answer = advice_of(run_of([](Thread& thread) {
    thread.code(10 * us);
    thread.begin_range();
    thread.code(10 * us);
    thread.range("forward", 2 * ms);
    thread.code(4 * ms);
    thread.op("autograd::engine::evaluate_function: AddmmBackward0", 3 * ms);
    thread.op("aten::add_", 1 * ms);
    thread.code(1 * ms);
    thread.op("aten::add_", 1 * ms);
    thread.end_range("Optimizer.step#AdamW.step");
  }));
  std::map<std::string, std::int64_t> code_ns;  // by phase
  for (const auto& row : answer.table("partition")->rows) {
    if (std::get<std::string>(row[1]) == "code between operators")
      code_ns[std::get<std::string>(row[2])] += std::get<std::int64_t>(row[4]);
  }
  CHECK(code_ns["other"] == doctest::Approx(4 * ms).epsilon(0.02));
  CHECK(code_ns["optimizer"] == doctest::Approx(1 * ms).epsilon(0.02));
}

}  // namespace
}  // namespace stepscope::diagnose
