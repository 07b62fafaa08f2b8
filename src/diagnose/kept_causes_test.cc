// Causes that lie in how rows, states and copies are kept and looked up, on jobs made by hand: found where they are,
// and not where they are not.
#include <doctest/doctest.h>

#include <string>

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

const std::vector<std::string> kMain{"train.py(30): main"};

TEST_CASE("advice: a loop that carries its state through gates is a recurrent layer, what looks elsewhere is none") {
  const auto job = [](std::string_view other, bool carries) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 4 * ms, kMain);
      for (int i = 0; i < 20; i++) {
        thread.op("aten::addmm", 100 * us, {"train.py(30): main", "train.py(10): forward"});
        for (const char* name : {"aten::sigmoid", "aten::tanh", "aten::mul", "aten::add"}) {
          thread.op(name, 30 * us, {"train.py(30): main", "train.py(10): forward"});
        }
        thread.op(other, 30 * us, {"train.py(30): main", "train.py(10): forward"});
      }
    });
    run.stack_steps[0].code = {{"train.py", 10, "__next__", 11}};
    if (carries) run.stack_steps[0].code.push_back({"train.py", 10, "(carries) 15", 11});
    return advice_of(run);
  };
  const Answer answer = job("aten::mul", true);
  const Finding* found = find(answer, "recurrence_by_hand");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "forward");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low > 1.2);
  CHECK(find(answer, "per_sample_loop") == nullptr);
  CHECK(find(job("aten::softmax", true), "recurrence_by_hand") == nullptr);  // attention, or a word that is chosen
  CHECK(find(job("aten::mul", false), "recurrence_by_hand") == nullptr);
  CHECK(find(job("aten::mul", false), "per_sample_loop") != nullptr);
}

TEST_CASE("advice: ones and zeros that are multiplied with a matrix pick rows of it, others do not") {
  const auto job = [](std::string_view product) {
    const Run run = run_of([&](Thread& thread) {
      thread.op("aten::one_hot", 2 * ms, {}, {.dims = "[[32, 24], []]", .concrete = R"(["", "4000"])"});
      thread.op("aten::to", 1 * ms, {}, {.dims = "[[32, 24, 4000], [], [], [], []]"});
      thread.op("aten::matmul", 5 * ms, {}, {.sequence = 7, .dims = product});
      thread.op("aten::conv1d", 4 * ms);
      thread.op("autograd::engine::evaluate_function: MmBackward0", 4 * ms, {}, {.sequence = 7, .fwd_thread = 1});
    });
    return advice_of(run);
  };
  const Answer answer = job("[[32, 24, 4000], [4000, 64]]");
  const Finding* found = find(answer, "one_hot_product");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Of 16 ms 4 stay, and 0.05 of the 4 ms back at best.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 4.2)).epsilon(0.02));
  CHECK(find(job("[[32, 24, 64], [64, 64]]"), "one_hot_product") == nullptr);  // the ones are a loss's
}

TEST_CASE("advice: what is kept and grows by concatenation is copied each time, parts that are put together are not") {
  const auto job = [](int grows) {
    int length = 100;
    return advice_of(run_of([&, length](Thread& thread) mutable {
      for (int word = 0; word < 3; word++, length += grows) {
        const std::string kept = "[8, 4, " + std::to_string(length) + ", 32]";
        thread.op("aten::linear", 2 * ms);
        thread.op("aten::cat", 2 * ms, {}, {.dims = "[[" + kept + ", [8, 4, 1, 32]], []]", .concrete = R"(["", "2"])"});
      }
    }));
  };
  const Answer answer = job(1);
  const Finding* found = find(answer, "growing_cache");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.6);
  CHECK(find(job(0), "growing_cache") == nullptr);
}

TEST_CASE("advice: copies below deepcopy are of the state, with what the function does to give the last one back") {
  const auto job = [](std::string_view below) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::mm", 4 * ms, kMain);
      thread.op("aten::copy_", 3 * ms, {"train.py(30): main", "train.py(10): watch", std::string(below)});
      thread.code(1 * ms, {"train.py(30): main", "train.py(10): watch"});
      thread.op("aten::add", 2 * ms, kMain);
    }));
  };
  const Answer answer = job("copy.py(128): deepcopy");
  const Finding* found = find(answer, "state_copies");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "watch");
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 6)).epsilon(0.02));
  CHECK(find(job("train.py(40): fill"), "state_copies") == nullptr);
}

}  // namespace
}  // namespace stepscope::diagnose
