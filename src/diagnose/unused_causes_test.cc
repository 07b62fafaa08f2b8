// Causes that lie in work of which most is used by nothing, on jobs made by hand: found where it is, and not where it
// is used.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

const std::vector<std::string> kHere{"train.py(30): main"};

// A picture of three million numbers that is changed, and cropped then; twice in a step.
struct Pictures {
  std::string_view first = "aten::to", second = "aten::div", divisor = "[3, 1, 1]";
  std::string_view until = "96", behind = "[[3, 96, 96], []]";
  std::string_view again = {}, look = {};
};

Answer pictures(const Pictures& given) {
  return advice_of(run_of([&](Thread& thread) {
    for (int turn = 0; turn < 2; turn++) {
      const std::string both = "[[3, 1000, 1000], " + std::string(given.divisor) + "]";
      const std::string to = R"(["", "1", "0", ")" + std::string(given.until) + R"(", "1"])";
      thread.op(given.first, 4 * ms, kHere, {.dims = "[[3, 1000, 1000], [], [], [], []]"});
      const bool other = turn == 1 && !given.again.empty();
      thread.op(other ? given.again : given.second, 4 * ms, kHere, {.dims = both});
      if (!given.look.empty()) thread.op(given.look, 5 * us, kHere, {.dims = "[[3, 1000, 1000], []]"});
      thread.op("aten::slice", 5 * us, kHere, {.dims = "[[3, 1000, 1000], [], [], [], []]", .concrete = to});
      const std::string rows = "[[3, " + std::string(given.until) + ", 1000], [], [], [], []]";
      thread.op("aten::slice", 5 * us, kHere, {.dims = rows, .concrete = R"(["", "2", "0", "96", "1"])"});
      thread.op("aten::flip", 1 * ms, kHere, {.dims = given.behind});
    }
    thread.op("aten::conv1d", 4 * ms, kHere);
  }));
}

}  // namespace

TEST_CASE("advice: what is done to all of a tensor that is cut off behind it could be done to what is left") {
  const Answer answer = pictures({});
  const Finding* found = find(answer, "work_cut_off");
  REQUIRE(found != nullptr);
  CHECK(evidence(*found, "Elements worked on") == 3'000'000);
  CHECK(evidence(*found, "Left") == 3 * 96 * 96);
  REQUIRE(found->gain);  // of 22 ms 16 nearly go
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(22.02 / 6.2)).epsilon(0.02));
  CHECK(find(pictures({.until = "500", .behind = "[[3, 500, 96], []]"}), "work_cut_off") != nullptr);
  // Its other parts are used as well; it was there before; the sum has another tensor's part everywhere.
  CHECK(find(pictures({.behind = "[[3, 1000, 1000], []]"}), "work_cut_off") == nullptr);
  CHECK(find(pictures({.first = "aten::mul_", .second = "aten::div_"}), "work_cut_off") == nullptr);
  // What comes behind the first one is no turn of a loop, and may use all of it; behind the second one nothing comes.
  const Answer other_turn = pictures({.again = "aten::add"});
  REQUIRE(find(other_turn, "work_cut_off") != nullptr);
  CHECK(fast_end(*find(other_turn, "work_cut_off")->gain) == doctest::Approx(at_most(22.02 / 14.1)).epsilon(0.02));
  const Answer looked_at = pictures({.look = "aten::view"});
  CHECK(find(looked_at, "work_cut_off") == nullptr);
  const Answer sum = pictures({.divisor = "[3, 1000, 1000]"});
  CHECK(find(sum, "work_cut_off") == nullptr);
}

TEST_CASE("advice: an order by chance of all, of which a few are taken, unless it is gone through") {
  const auto job = [](int slices, bool taken = false) {
    return advice_of(run_of([&](Thread& thread) {
      for (int turn = 0; turn < 2; turn++) {
        thread.op("aten::randperm", 5 * ms, kHere, {.dims = "[[], []]", .concrete = R"(["500000", ""])"});
        for (int i = 0; i < slices; i++) {
          thread.op("aten::slice", 5 * us, kHere,
                    {.dims = "[[500000], [], [], [], []]", .concrete = R"(["", "0", "0", "256", "1"])"});
          thread.op("aten::index", 10 * us, kHere,
                    {.dims = "[[500000], [[256]]]", .types = R"(["long int", "TensorList"])"});
        }
      }
      if (taken)
        thread.op("aten::index_select", 10 * us, kHere,
                  {.dims = "[[500000], [], [500000]]", .types = R"(["float", "", "long int"])"});
      thread.op("aten::addmm", 5 * ms, kHere);
    }));
  };
  const Answer answer = job(1);
  const Finding* found = find(answer, "work_cut_off");
  REQUIRE(found != nullptr);
  CHECK(found->next.value_or("").find("randint") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(15.0 / 5)).epsilon(0.02));
  CHECK(find(job(2), "work_cut_off") == nullptr);
  CHECK(find(job(1, true), "work_cut_off") == nullptr);
}

TEST_CASE("advice: odds of all words where the last one's are taken") {
  const auto job = [](std::string_view from, std::string_view width) {
    return advice_of(run_of([&](Thread& thread) {
      const std::string weight = "[[4, 64, 256], [" + std::string(width) + ", 256], []]";
      const std::string last = R"(["", "1", ")" + std::string(from) + R"(", "9223372036854775807", "1"])";
      thread.op("aten::conv1d", 4 * ms, kHere);
      thread.op("aten::linear", 8 * ms, kHere, {.dims = weight});
      thread.op("aten::slice", 5 * us, kHere, {.dims = "[[4, 64, 4000], [], [], [], []]", .concrete = last});
      thread.op("aten::argmax", 1 * ms, kHere, {.dims = "[[4, 1, 4000], [], []]"});
    }));
  };
  const Answer answer = job("-1", "4000");
  const Finding* found = find(answer, "work_cut_off");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(13.0 / 5.1)).epsilon(0.02));
  CHECK(find(job("-32", "4000"), "work_cut_off") == nullptr);  // half of them
  CHECK(find(job("-1", "3000"), "work_cut_off") == nullptr);   // another layer's
}

TEST_CASE("advice: a diagonal that is spread out to a matrix, and what is done to that") {
  const auto job = [](std::string_view maker, std::string_view given, std::string_view matrix) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op(maker, 1 * ms, kHere, {.dims = given, .concrete = R"(["", "0", "-2", "-1"])"});
      thread.op("aten::linalg_cholesky", 5 * ms, kHere, {.sequence = 7, .dims = "[" + std::string(matrix) + ", []]"});
      thread.op("aten::conv1d", 4 * ms, kHere);
      thread.op("autograd::engine::evaluate_function: LinalgCholeskyExBackward0", 4 * ms, {},
                {.sequence = 7, .fwd_thread = 1});
    }));
  };
  const Answer answer = job("aten::diag_embed", "[[160, 48], [], [], []]", "[160, 48, 48]");
  const Finding* found = find(answer, "diagonal_matrix");
  REQUIRE(found != nullptr);
  CHECK(evidence(*found, "Rows of a matrix") == 48);
  REQUIRE(found->gain);  // of 14 ms 9 go
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(14.0 / 5)).epsilon(0.02));
  CHECK(find(job("aten::diag_embed", "[[160, 48], [], [], []]", "[160, 32, 32]"), "diagonal_matrix") == nullptr);
  CHECK(find(job("aten::diag", "[[48, 48], []]", "[48, 48]"), "diagonal_matrix") == nullptr);  // takes it out
  CHECK(find(job("aten::diag", "[[48], []]", "[48, 48]"), "diagonal_matrix") != nullptr);
}

TEST_CASE("advice: a matrix that a diagonal was added to is full, and a weight may be as large as one") {
  const auto job = [](std::string_view behind, std::string_view given) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::diag", 1 * us, kHere, {.dims = "[[512], []]", .concrete = R"(["", "0"])"});
      thread.op(behind, 1 * us, kHere, {.dims = given});
      for (int i = 0; i < 10; i++) thread.op("aten::relu", 100 * us, kHere, {.dims = "[[64, 512]]"});
      thread.op("aten::mm", 5 * ms, kHere, {.dims = "[[64, 512], [512, 512]]"});
      thread.op("aten::linear", 5 * ms, kHere, {.dims = "[[64, 512], [512, 512], []]"});
      thread.op("aten::linalg_cholesky", 5 * ms, kHere, {.dims = "[[512, 512], []]"});
    }));
  };
  CHECK(find(job("aten::add", "[[512, 512], [512, 512], []]"), "diagonal_matrix") == nullptr);
  const Answer answer = job("aten::relu", "[[64, 512]]");
  const Finding* found = find(answer, "diagonal_matrix");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);  // of 16 ms the 5 of the decomposition
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 11)).epsilon(0.02));
}

}  // namespace stepscope::diagnose
