// Causes in services, on jobs made by hand: a model that is called once for each request or word.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/model_calls.h"
#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

// A call of a model of 10 ms: a step with the module's range.
struct Calls {
  std::vector<int> lengths;  // of what each is given
  int batch = 1;
  std::int64_t gap_ns = 500 * us;                        // between calls
  bool modules = true, backward = false, graph = false;  // graph: autograd notes it
  std::string class_name = "Net";

  Run make() const {
    TraceFixture f;
    const TrackId cpu = f.host("1");
    f.op(cpu, "aten::empty", 0, 10 * us);
    std::int64_t at_ns = 1 * ms;
    for (std::size_t i = 0; i < lengths.size(); i++) {
      const std::string given = "[" + std::to_string(batch) + ", " + std::to_string(lengths[i]) + "]";
      f.slice(cpu, "user_annotation", "ProfilerStep#" + std::to_string(i), at_ns, 10 * ms + gap_ns);
      if (modules) f.op(cpu, "stepscope.module: model (" + class_name + ")", at_ns, 10 * ms);
      f.op(cpu, "aten::embedding", at_ns + 10 * us, 4 * ms,
           {.sequence = graph ? static_cast<std::int64_t>(i) : kAbsent,
            .dims = "[[1000, 64], " + given + ", [], [], []]"});
      f.op(cpu, "aten::mean", at_ns + 4020 * us, 5900 * us, {.dims = "[" + given + "]"});
      at_ns += 10 * ms + gap_ns;
      if (backward) {
        f.op(cpu, "autograd::engine::evaluate_function: MeanBackward0", at_ns - 100 * us, 50 * us, {.fwd_thread = 1});
      }
    }
    f.op(cpu, "aten::empty", at_ns + 100 * us, 10 * us);
    return derived(std::move(f));
  }

  bool has(std::string_view cause) const { return find(advice_of(make()), cause) != nullptr; }
};

TEST_CASE("advice: requests of any length that are answered one by one, and words that follow one another") {
  const Answer answer = advice_of(Calls{.lengths = {8, 7, 12, 6, 9}}.make());
  const Finding* found = find(answer, "tiny_batches");
  REQUIRE(found != nullptr);
  CHECK(found->where.module == "model");
  CHECK(found->cause == "serving");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.2);
  CHECK_FALSE(Calls{.lengths = {8, 9, 10, 11, 12}}.has("tiny_batches"));
  // One request may be just a position longer than the one before.
  CHECK(Calls{.lengths = {8, 9, 7, 12, 6}}.has("tiny_batches"));
  CHECK(Calls{.lengths = {8, 8, 8, 8, 8}}.has("tiny_batches"));
}

TEST_CASE("advice: what is worked out between two requests is no wait for the next one") {
  const auto job = [](bool works) {
    TraceFixture f;
    const TrackId cpu = f.host("1");
    f.op(cpu, "aten::empty", 0, 10 * us);
    for (int i = 0; i < 6; i++) {
      const std::int64_t at_ns = (1 + i * 10) * ms;
      f.slice(cpu, "user_annotation", "ProfilerStep#" + std::to_string(i), at_ns, 10 * ms);
      f.op(cpu, "stepscope.module: model (Net)", at_ns, 4 * ms);
      f.op(cpu, "aten::embedding", at_ns + 10 * us, 3900 * us, {.dims = "[[1000, 64], [1, 30], [], [], []]"});
      if (works) f.op(cpu, "aten::topk", at_ns + 4100 * us, 5600 * us, {.dims = "[[1, 20000]]"});
    }
    f.op(cpu, "aten::empty", 62 * ms, 10 * us);
    return advice_of(derived(std::move(f)));
  };
  CHECK(find(job(true), "tiny_batches") != nullptr);
  CHECK(find(job(false), "tiny_batches") == nullptr);
}

TEST_CASE("advice: requests of two threads at a time are those of each, however they lie beside one another") {
  TraceFixture f;
  const TrackId one = f.host("1"), other = f.host("2");
  // The one goes from word to word, the other answers whole texts.
  for (int i = 0; i < 6; i++) {
    const std::int64_t at_ns = i * 12 * ms;
    const std::string words = "[[1000, 64], [1, " + std::to_string(8 + i) + "], [], [], []]";
    f.op(one, "stepscope.module: model (Net)", at_ns, 10 * ms);
    f.op(one, "aten::lt", at_ns + 2 * us, 5 * us, {.dims = "[[64], [1, 1]]"});  // positions against a length
    f.op(one, "aten::embedding", at_ns + 10 * us, (8 + i) * ms / 2, {.dims = words});
    f.op(other, "stepscope.module: model (Net)", at_ns + 3 * ms, 11 * ms);
    f.op(other, "aten::embedding", at_ns + 3010 * us, 10 * ms, {.dims = "[[1000, 64], [4, 30], [], [], []]"});
  }
  const Run run = derived(std::move(f));
  const simulate::Predictor predictor(run);
  const Result<Case> about = Case::of(run, predictor);
  REQUIRE(about);
  const std::vector<ModelCall>& calls = model_calls(*about);
  REQUIRE(calls.size() == 12);
  for (std::size_t i = 0; i < calls.size(); i++) {
    CHECK(calls[i].track == (i < 6 ? one : other));
    CHECK(calls[i].sizes == (i < 6 ? Sizes{1, static_cast<std::int64_t>(8 + i)} : Sizes{4, 30}));
    for (const std::uint32_t node : calls[i].nodes) CHECK(about->work(node).track == calls[i].track);
  }
}

TEST_CASE("advice: a word by itself that is looked up is what a model is given, whatever is made of it then") {
  TraceFixture f;
  const TrackId thread = f.host("1");
  for (int i = 0; i < 6; i++) {
    const std::int64_t at_ns = i * 10 * ms;
    f.op(thread, "stepscope.module: model (Net)", at_ns, 10 * ms);
    f.op(thread, "aten::embedding", at_ns + 10 * us, 1 * ms, {.dims = "[[1000, 64], [1], [], [], []]"});
    f.op(thread, "aten::gelu", at_ns + 2 * ms, 7 * ms, {.dims = "[[1, 64]]"});
  }
  const Run run = derived(std::move(f));
  const simulate::Predictor predictor(run);
  const Result<Case> about = Case::of(run, predictor);
  REQUIRE(about);
  REQUIRE(model_calls(*about).size() == 6);
  for (const ModelCall& call : model_calls(*about)) CHECK(call.sizes == Sizes{1});
}

TEST_CASE("advice: few requests, batches of them, and requests that come one by one are no tiny batches") {
  CHECK(Calls{.lengths = {8, 7, 12, 6, 9}}.has("tiny_batches"));
  CHECK_FALSE(Calls{.lengths = {8, 7, 12, 6}}.has("tiny_batches"));
  CHECK_FALSE(Calls{.lengths = {8, 7, 12, 6, 9}, .batch = 2}.has("tiny_batches"));
  CHECK_FALSE(Calls{.lengths = {8, 7, 12, 6, 9}, .gap_ns = 6 * ms}.has("tiny_batches"));
}

TEST_CASE("advice: a model that answers is given a word more with each call, and keeps nothing") {
  CHECK_FALSE(Calls{.lengths = {8, 9, 10, 11, 12}}.has("memory_growth"));
  CHECK(Calls{.lengths = {8, 9, 10, 11, 12}, .backward = true}.has("memory_growth"));
  CHECK(Calls{.lengths = {8, 9, 10, 11, 12}, .modules = false}.has("memory_growth"));
  CHECK_FALSE(Calls{.lengths = {8, 7, 12, 6, 9}, .backward = true}.has("memory_growth"));
}

TEST_CASE("advice: what a service keeps for a backward pass; more where torch answers a layer by one operator") {
  const auto gain = [](std::string_view class_name) {
    const Answer answer =
        advice_of(Calls{.lengths = {8, 7, 12, 6, 9}, .graph = true, .class_name = std::string(class_name)}.make());
    const Finding* found = find(answer, "no_inference_mode");
    return found == nullptr || !found->gain ? 1 : found->gain->speedup_low;
  };
  CHECK(gain("TransformerEncoderLayer") > 1.5);
  CHECK(gain("Net") < 1.2);
}

TEST_CASE("advice: a graph that nobody goes back through costs inside of operators, and where it is let go") {
  const auto gain = [](bool noted, int tensors) {
    std::int64_t number = 0;
    Run run = run_of(
        [&](Thread& thread) {
          for (int request = 0; request < 3; request++) {
            // A recurrent network: one operator with a hundred in it.
            thread.begin_range();
            thread.op("aten::gru", 2 * us, {}, {.dims = "[[4, 100, 64]]"});
            for (int i = 0; i < 100; i++) {
              thread.op("aten::tanh", 4 * us, {}, {.sequence = noted ? number++ : number, .dims = "[[4, 64]]"});
            }
            thread.end_range("stepscope.module: reader (GRU)");
            for (int i = 0; i < tensors; i++) thread.freed(1024);
            thread.code(200 * us);
          }
        },
        false);
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "no_inference_mode");
    return found == nullptr || !found->gain ? 1 : found->gain->speedup_high;
  };
  CHECK(gain(true, 0) > 1.2);
  CHECK(gain(true, 100) > gain(true, 0) + 0.2);
  CHECK(gain(false, 100) < gain(true, 100));
}

TEST_CASE("advice: a program that calls the layers of its model itself reads all words again in each of them") {
  const auto job = [](bool grows) {
    return run_of(
        [&, words = 8](Thread& thread) mutable {
          for (int word = 0; word < 6; word++) {
            for (const char* layer : {"stepscope.module: layers.0 (Layer)", "stepscope.module: layers.1 (Layer)"}) {
              const int length = grows ? words + word : words;
              const std::string sizes = "[[1, " + std::to_string(length) + ", 64]]";
              thread.nested(layer, "aten::gelu", length * 100 * us, {}, {.dims = sizes});
            }
          }
        },
        false);
  };
  const Answer answer = advice_of(job(true));
  const Finding* found = find(answer, "no_cache");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low > 2);
  CHECK(find(advice_of(job(false)), "no_cache") == nullptr);
}

TEST_CASE("advice: samples that a step goes forward and back with one by one are a batch, whole batches are none") {
  const auto job = [](int samples) {
    std::int64_t number = 0;
    return advice_of(run_of([&](Thread& thread) {
      for (int i = 0; i < 8; i++) {
        const std::string dims = "[[" + std::to_string(samples) + ", 64], [64, 64]]";
        number++;
        thread.begin_range();
        thread.code(10 * us);
        for (int k = 0; k < 10; k++) thread.op("aten::mm", 20 * us, {}, {.sequence = number, .dims = dims});
        thread.end_range("stepscope.module: Net (Net)");
        for (int k = 0; k < 10; k++) {
          thread.op("autograd::engine::evaluate_function: MmBackward0", 40 * us, {},
                    {.sequence = number, .fwd_thread = 1});
        }
      }
    }));
  };
  const Answer answer = job(1);
  const Finding* found = find(answer, "tiny_batches");
  REQUIRE(found != nullptr);
  CHECK(found->sentence.find("forward and back") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.5);
  CHECK(find(job(16), "tiny_batches") == nullptr);
}

}  // namespace
}  // namespace stepscope::diagnose
