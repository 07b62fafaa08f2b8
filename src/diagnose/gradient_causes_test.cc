// Causes that lie in gradients which nobody needs, on jobs made by hand: found where they are, and not where they are
// not.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

constexpr std::string_view kBackward = "autograd::engine::evaluate_function: AddmmBackward0";
constexpr std::string_view kAccumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

// A layer that is frozen for the optimizer, of 10 ms back: 4 for the gradient of what it was given, 4 for that of its
// weight, 2 to keep this. `first`: it is called before the layer that is learned.
Run frozen_layer(bool first, std::int64_t unread) {
  std::int64_t number = 0;
  Run run = run_of([&](Thread& thread) {
    const std::int64_t frozen = ++number, learned = ++number;
    const auto call = [&](std::string_view path, std::int64_t sequence) {
      thread.begin_range();
      thread.code(us);
      thread.op("aten::addmm", 4 * ms, {}, {.sequence = sequence, .dims = "[[64], [32, 128], [128, 64], [], []]"});
      thread.end_range("stepscope.module: " + std::string(path) + " (Linear)");
    };
    if (first) call("frozen", frozen);
    call("learned", learned);
    if (!first) call("frozen", frozen);
    thread.op(kBackward, 4 * ms, {}, {.sequence = learned, .fwd_thread = 1});
    thread.op(kAccumulate, 2 * ms);
    const OpIds ids{.sequence = frozen, .fwd_thread = 1};
    thread.nested(kBackward, "aten::mm", 4 * ms, ids, {.dims = "[[32, 64], [64, 128]]"});
    thread.nested(kBackward, "aten::mm", 4 * ms, ids, {.dims = "[[128, 32], [32, 64]]"});
    thread.op(kAccumulate, 2 * ms);
  });
  run.traces[0].module_sizes = {{"frozen", 8256, unread, 8256 - unread}, {"learned", 8256, 0, 8256}};
  return run;
}

TEST_CASE("advice: gradients that no optimizer reads go, and all of the backward pass that leads to nothing else") {
  const auto gain = [](bool first) {
    const Answer answer = advice_of(frozen_layer(first, 8256));
    const Finding* found = find(answer, "unread_gradients");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    CHECK(found->where.module == "frozen");
    return *found->gain;
  };
  // 24 ms: its own gradient and keeping it go for sure; before the layer that is learned so does what leads on, which
  // behind it may be needed.
  CHECK(gain(false).speedup_low == doctest::Approx(24.0 / 18).epsilon(0.02));
  CHECK(gain(true).speedup_low == doctest::Approx(24.0 / 14).epsilon(0.04));
  CHECK(fast_end(gain(true)) == doctest::Approx(at_most(24.0 / 14)).epsilon(0.02));
  CHECK(find(advice_of(frozen_layer(true, 0)), "unread_gradients") == nullptr);
}

// A step of two networks: the second one learns from what the first one makes, of 4 ms in and back each, and then the
// first one learns through the second.
Run two_networks(std::string_view said, bool both = true) {
  std::int64_t number = 0;
  Run run = run_of([&](Thread& thread) {
    const auto call = [&](std::string_view path) {
      thread.begin_range();
      thread.code(us);
      thread.op("aten::addmm", 4 * ms, {}, {.sequence = ++number, .dims = "[[64], [32, 128], [128, 64], [], []]"});
      thread.end_range("stepscope.module: " + std::string(path) + " (Linear)");
      return number;
    };
    const auto back = [&](std::int64_t last, std::int64_t before) {
      thread.begin_range();
      for (const std::int64_t sequence : {last, before}) {
        thread.op(kBackward, 4 * ms, {}, {.sequence = sequence, .fwd_thread = 1});
      }
      thread.end_range("backward");
    };
    const std::int64_t fake = call("Maker"), judged = call("Judge");
    call("Judge");
    back(judged, fake);
    if (!both) return;
    const std::int64_t made = call("Maker");
    back(call("Judge"), made);
  });
  run.traces[0].module_sizes = {{"Maker", 8256, 0, 8256}, {"Judge", 8256, 0, 8256}};
  if (!said.empty()) run.stack_steps[0].code.push_back({"train.py", 20, std::string(said), 33});
  return run;
}

TEST_CASE("advice: gradients that are thrown away before an optimizer reads them, in one of two backward passes") {
  const Answer answer = advice_of(two_networks("(thrown) 1 2 Maker"));
  const Finding* found = find(answer, "unread_gradients");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 33);
  CHECK(found->where.module == "Maker");
  CHECK(found->next.value_or("").find("detach()") != std::string::npos);
  REQUIRE(found->gain);  // of 36 ms the 4 that go back through the first
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(36.0 / 32)).epsilon(0.02));
  // Of the other pass only the weight's part would go, which is not known of these; and there all that learns learns.
  CHECK(find(advice_of(two_networks("")), "unread_gradients") == nullptr);
  CHECK(find(advice_of(two_networks("(thrown) 3 4 Maker")), "unread_gradients") == nullptr);  // of other passes
  // Two ranks, of which one was seen to read all.
  Run ranks = two_networks("(thrown) 1 2 Maker");
  Run other = two_networks("");
  other.traces[0].rank.rank = 1;
  other.traces[0].module_sizes.push_back({"Other", 64, 64, 0});
  ranks.traces.push_back(std::move(other.traces[0]));
  derive::derive_run(ranks, 1);
  CHECK(find(advice_of(ranks), "unread_gradients") != nullptr);
  // Steps that have fewer passes than the one that was seen are told by what they call.
  Run fewer = two_networks("(thrown) 1 2 Maker");
  fewer.traces = std::move(two_networks("", false).traces);
  const Answer of_one = advice_of(fewer);
  REQUIRE(find(of_one, "unread_gradients") != nullptr);
  CHECK(fast_end(*find(of_one, "unread_gradients")->gain) == doctest::Approx(at_most(20.0 / 16)).epsilon(0.02));
}

// A teacher within the model that is trained, called before a student of which one layer, the last one of torch's
// attention, has no range of its own: it is used within what holds it.
TEST_CASE("advice: the last layer of torch's attention is used where that is called, what else has no range anywhere") {
  std::int64_t number = 0;
  Run run = run_of([&](Thread& thread) {
    const std::int64_t frozen = ++number, learned = ++number;
    thread.begin_range();
    thread.code(us);
    const auto call = [&](std::string_view path, std::int64_t sequence) {
      thread.begin_range();
      thread.code(us);
      thread.op("aten::addmm", 4 * ms, {}, {.sequence = sequence, .dims = "[[64], [32, 128], [128, 64], [], []]"});
      thread.end_range("stepscope.module: " + std::string(path));
    };
    call("teacher.layer (Linear)", frozen);
    call("student.attention (MultiheadAttention)", learned);
    thread.end_range("stepscope.module: Distillation (Distillation)");
    thread.op(kBackward, 4 * ms, {}, {.sequence = learned, .fwd_thread = 1});
    thread.op(kBackward, 8 * ms, {}, {.sequence = frozen, .fwd_thread = 1});
  });
  std::vector<ModuleSize>& sizes = run.traces[0].module_sizes;
  sizes = {{"teacher.layer", 8256, 8256, 0}, {"student.attention", 8256, 0, 8256}};
  sizes.push_back({"student.attention.out", 8256, 0, 8256});
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "unread_gradients");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low == doctest::Approx(20.0 / 12).epsilon(0.04));
  CHECK(found->where.module.value_or("") == "teacher");  // all of it
  for (const std::string_view other : {"elsewhere.out", "teacher.layer.prompt", "student.prompt", "prompt"}) {
    CAPTURE(other);
    run.traces[0].module_sizes.back().path = std::string(other);
    CHECK(find(advice_of(run), "unread_gradients") == nullptr);
  }
}

// Of a table of a million rows so many are looked up; the optimizer goes through it and a layer of as many parameters.
Run table(int looked_up, std::string_view optimizer = "SGD") {
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::addmm", 10 * ms);
    thread.nested("autograd::engine::evaluate_function: EmbeddingBackward0", "aten::embedding_dense_backward", 10 * ms,
                  {},
                  {.dims = "[[" + std::to_string(looked_up) + ", 16], [" + std::to_string(looked_up) + "], [], [], []]",
                   .concrete = R"(["", "", "1000000", "-1", "False"])"});
    thread.begin_range();
    thread.code(us);
    thread.op("aten::_fused_sgd_", 20 * ms);
    thread.end_range("Optimizer.step#" + std::string(optimizer) + ".step");
  });
  run.traces[0].module_sizes = {{"table", 16'000'000}, {"layer", 16'000'000}};
  return run;
}

TEST_CASE("advice: the gradient of a table of which few rows are looked up is made and taken as a whole") {
  const Answer answer = advice_of(table(1000));
  const Finding* found = find(answer, "dense_gradients");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Of 40 ms the table has 20, of which a thousandth is left at best, ten times as much at worst.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(40.0 / (20 + 0.02))).epsilon(0.01));
  CHECK(found->gain->speedup_low == doctest::Approx(40.0 / (20 + 0.2)).epsilon(0.01));
  CHECK(find(advice_of(table(200'000)), "dense_gradients") == nullptr);
  // Adam goes on with rows that are not looked up: what it learns would change.
  const Answer offer = advice_of(table(1000, "Adam"));
  found = find(offer, "dense_gradients");
  REQUIRE(found != nullptr);
  CHECK_FALSE(found->gain);
  CHECK(found->gain_reason.find("An offer") != std::string::npos);
}

}  // namespace
}  // namespace stepscope::diagnose
