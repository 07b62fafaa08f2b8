// Causes that are work for nobody, on jobs made by hand: done twice, for places that nobody reads, or kept element by
// element where a sum is all that is wanted.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

const std::vector<std::string> kMain{"train.py(30): main"};

TEST_CASE("advice: differences of all pairs that are summed up are a product, and their memory is not given back") {
  const auto job = [](std::string_view given, std::string_view last) {
    const Run run = run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 4 * ms, kMain);
      thread.taken(64 << 20, 0x1000);
      thread.op("aten::sub", 4 * ms, kMain, {.dims = given});
      thread.op("aten::pow", 4 * ms, kMain, {.dims = "[[512, 512, 64], []]"});
      thread.op(last, 2 * ms, kMain, {.dims = "[[512, 512, 64], [], [], []]"});
      thread.code(1 * ms, kMain);
      thread.freed(64 << 20, 0x1000);
      thread.code(1 * ms, kMain);
      thread.op("aten::argmin", 10 * us, kMain);
    });
    return advice_of(run);
  };
  const Answer answer = job("[[512, 1, 64], [1, 512, 64], []]", "aten::sum");
  const Finding* found = find(answer, "pairs_by_broadcast");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "main");
  REQUIRE(found->gain);
  // Of 16 ms the 4 of the convolution stay, 3 % of 10 ms, and of the 2 ms that give back a tenth.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.01 / 4.51)).epsilon(0.02));
  CHECK(find(answer, "python_in_step") == nullptr);  // what gives memory back is no code
  CHECK(find(job("[[512, 512, 64], [1, 512, 64], []]", "aten::sum"), "pairs_by_broadcast") == nullptr);  // a centre
  CHECK(find(job("[[512, 1, 64], [1, 512, 64], []]", "aten::conv3d"), "pairs_by_broadcast") == nullptr);
  // A loss of ranks compares numbers, of which no product is the same.
  CHECK(find(job("[[4096, 1], [1, 4096], []]", "aten::sum"), "pairs_by_broadcast") == nullptr);
}

TEST_CASE("advice: products and cosines of all pairs are a product of matrices") {
  const auto job = [](std::string_view name, std::string_view behind) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 4 * ms, kMain);
      thread.op(name, 6 * ms, kMain, {.dims = "[[512, 1, 64], [1, 512, 64], [], []]"});
      if (!behind.empty()) thread.op(behind, 2 * ms, kMain, {.dims = "[[512, 512, 64], [], [], []]"});
    }));
  };
  const Answer cosines = job("aten::cosine_similarity", "");
  const Finding* found = find(cosines, "pairs_by_broadcast");
  REQUIRE(found != nullptr);
  CHECK(found->next.value_or("").find("F.normalize") != std::string::npos);
  REQUIRE(found->gain);  // of 6 ms 3 % at best
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 4.18)).epsilon(0.02));
  const Answer products = job("aten::mul", "aten::sum");
  REQUIRE(find(products, "pairs_by_broadcast") != nullptr);
  CHECK(find(products, "pairs_by_broadcast")->next.value_or("").find("einsum") != std::string::npos);
  CHECK(find(job("aten::mul", "aten::amax"), "pairs_by_broadcast") == nullptr);  // is none
  CHECK(find(job("aten::mul", ""), "pairs_by_broadcast") == nullptr);
}

Run encoder_called_twice(std::string_view said, std::string_view within = "aten::relu") {
  std::int64_t sequence = 0;
  Run run = run_of([&](Thread& thread) {
    for (int call = 0; call < 2; call++) {
      thread.begin_range();
      thread.op("aten::conv2d", 4 * ms, kMain, {.sequence = sequence});
      thread.nested("aten::dropout", within, 10 * us);
      thread.end_range("stepscope.module: encoder (Encoder)");
      thread.op("autograd::engine::evaluate_function: ConvolutionBackward0", 4 * ms, {},
                {.sequence = sequence, .fwd_thread = 1});
      sequence++;
    }
    thread.op("aten::mse_loss", 4 * ms, kMain);
  });
  if (!said.empty()) run.stack_steps[0].code.push_back({"train.py", 20, std::string(said), 33});
  return run;
}

TEST_CASE("advice: a module that is called on the same input again, forward and back") {
  const Answer answer = advice_of(encoder_called_twice("(again) 2 2 encoder"));
  const Finding* found = find(answer, "repeated_forward");
  REQUIRE(found != nullptr);
  CHECK(found->where.module == "encoder");
  CHECK(found->where.line == 33);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(20.0 / 12)).epsilon(0.02));
  const Answer chance = advice_of(encoder_called_twice("(again) 2 2 encoder", "aten::bernoulli_"));
  REQUIRE(find(chance, "repeated_forward") != nullptr);
  CHECK(find(chance, "repeated_forward")->confidence_reason.find("dropout") != std::string::npos);
  // None: not said, of another number of calls, of another module, no numbers, not whole.
  for (const char* said : {"", "(again) 2 3 encoder", "(again) 2 2 decoder", "(again) x 2 encoder", "(again) 2 2 ",
                           "(again) 3 2 encoder", "(again) 99999999999999999999 2 encoder"}) {
    CAPTURE(said);
    CHECK(find(advice_of(encoder_called_twice(said)), "repeated_forward") == nullptr);
  }
}

TEST_CASE("advice: in a stretch of time without steps most calls of a module are on the same input again") {
  const auto job = [](int again, int of, bool is_part = true) {
    int request = 0;  // ranges of one name would be taken for steps
    Run run = run_of(
        [is_part, request](Thread& thread) mutable {
          thread.begin_range();
          thread.op("aten::conv2d", 4 * ms, kMain);
          for (int call = 0; call < 4; call++) {
            thread.begin_range();
            thread.op("aten::linear", 2 * ms, kMain);
            thread.end_range("stepscope.module: keys (Linear)");
            thread.op("aten::argmax", 1 * ms, kMain);
          }
          thread.end_range((is_part ? "stepscope.module: net" : "request ") + std::to_string(request++));
        },
        true, false);
    for (int call = 0; call < again; call++) {
      const std::string said = "(again) " + std::to_string(call + 2) + " " + std::to_string(of) + " keys";
      run.stack_steps[0].code.push_back({"train.py", 20, said, 33});
    }
    return advice_of(run);
  };
  const Answer answer = job(15, 20);
  const Finding* found = find(answer, "repeated_forward");
  REQUIRE(found != nullptr);
  CHECK(found->where.module == "keys");
  REQUIRE(found->gain);  // of 16 ms three quarters of 8 ms
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 10)).epsilon(0.02));
  CHECK(find(job(8, 20), "repeated_forward") == nullptr);
  CHECK(find(job(3, 4), "repeated_forward") == nullptr);           // too few to say how many
  CHECK(find(job(15, 20, false), "repeated_forward") == nullptr);  // a model that is timed on one input
}

Run with_words(std::string_view said) {
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::embedding", 100 * us, kMain, {.dims = "[[30000, 64], [16, 128], [], [], []]"});
    thread.op("aten::linear", 8 * ms, kMain, {.dims = "[[16, 128, 64], [64, 64], [64]]"});
    thread.op("aten::linear", 4 * ms, kMain, {.dims = "[[16, 64], [2, 64], [2]]"});
  });
  run.stack_steps[0].code.push_back({"train.py", 20, std::string(said), 33});
  return run;
}

TEST_CASE("advice: words that only fill up rows cost what others cost, and less of them is left than of the rest") {
  const Answer answer = advice_of(with_words("(padded) 500 400 words"));
  const Finding* found = find(answer, "padded_batches");
  REQUIRE(found != nullptr);
  CHECK(found->where.module == "words");
  CHECK(found->where.line == 33);
  CHECK(found->next->find("longest row") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.3);
  CHECK(found->gain->speedup_high < 1.7);
  const Answer even = advice_of(with_words("(padded) 500 0 words"));
  REQUIRE(find(even, "padded_batches") != nullptr);
  CHECK(find(even, "padded_batches")->next->find("as long") != std::string::npos);
  for (const char* said : {"(padded) 80 80 words", "(padded) 500", "(padded) 1500 0 words", "(padded) 300 400 words"}) {
    CAPTURE(said);
    CHECK(find(advice_of(with_words(said)), "padded_batches") == nullptr);
  }
}

// Of a recurrent layer whole turns go, with what each costs to be called.
TEST_CASE("advice: frames that only fill up rows are turns of a recurrent layer") {
  const auto gain = [](std::string_view layer) {
    Run run = run_of([&](Thread& thread) {
      for (int i = 0; i < 200; i++) thread.op("aten::tanh", 5 * us, kMain, {.dims = "[[16, 900, 64]]"});
      thread.op(layer, 8 * ms, kMain, {.dims = "[[16, 900, 64], [1, 16, 64], [], [], [], [], [], [], []]"});
      thread.op("aten::linear", 4 * ms, kMain, {.dims = "[[16, 64], [2, 64], [2]]"});
    });
    run.stack_steps[0].code.push_back({"train.py", 20, "(frames) 500 500 16 900 encoder", 33});
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "padded_batches");
    REQUIRE(found != nullptr);
    return found->gain.value_or(Gain()).speedup_low;
  };
  // Small operators say that a call takes 5 us: with it a little less goes of the other layer.
  CHECK(gain("aten::gru") > gain("aten::conv1d"));
}

TEST_CASE("advice: frames that only fill up rows cost what others cost, also where a convolution leaves every second") {
  const auto with_frames = [](std::string_view said) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 4 * ms, kMain, {.dims = "[[16, 80, 901], [144, 80, 5], [144], [], [], [], []]"});
      thread.op("aten::linear", 8 * ms, kMain, {.dims = "[[16, 451, 144], [144, 144], [144]]"});
      thread.op("aten::linear", 4 * ms, kMain, {.dims = "[[16, 144], [2, 144], [2]]"});
    });
    run.stack_steps[0].code.push_back({"train.py", 20, std::string(said), 33});
    return advice_of(run);
  };
  const Answer answer = with_frames("(frames) 500 400 16 901 encoder");
  const Finding* found = find(answer, "padded_batches");
  REQUIRE(found != nullptr);
  CHECK(found->where.module == "encoder");
  CHECK(found->where.line == 33);
  REQUIRE(found->gain);  // 12 of 16 ms are of frames, half of which fill up
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 10)).epsilon(0.02));
  for (const char* said : {"(frames) 80 80 16 901 encoder", "(frames) 500 400 16 901", "(frames) 500 400 0 901 encoder",
                           "(frames) 500 400 16 9223372036854775807 encoder", "(frames) 300 400 16 901 encoder"}) {
    CAPTURE(said);
    CHECK(find(with_frames(said), "padded_batches") == nullptr);
  }
}

Run with_loss(std::string_view said) {
  std::int64_t sequence = 0;
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::linear", 4 * ms, kMain, {.dims = "[[16, 128, 64], [64, 64], [64]]"});
    thread.op("aten::linear", 8 * ms, kMain, {.sequence = sequence, .dims = "[[16, 128, 64], [30000, 64], []]"});
    thread.op("aten::flatten", 5 * us, kMain, {.dims = "[[16, 128, 30000], [], []]"});
    thread.op("aten::cross_entropy_loss", 4 * ms, kMain, {.dims = "[[2048, 30000], [2048], [], [], [], []]"});
    thread.op("autograd::engine::evaluate_function: AddmmBackward0", 4 * ms, {},
              {.sequence = sequence++, .fwd_thread = 1});
  });
  run.stack_steps[0].code.push_back({"train.py", 20, std::string(said), 33});
  return run;
}

TEST_CASE("advice: a loss that ignores most places is asked for the odds of all") {
  const Answer answer = advice_of(with_loss("(ignored) 850"));
  const Finding* found = find(answer, "ignored_places");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 33);
  REQUIRE(found->gain);
  // 4 ms stay as they are, of the other 16 ms at best 15 %.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(20.005 / 6.4)).epsilon(0.02));
  for (const char* said : {"(ignored) 100", "(ignored) 1001", "(ignored) much", "(ignored)"}) {
    CAPTURE(said);
    CHECK(find(advice_of(with_loss(said)), "ignored_places") == nullptr);
  }
}

TEST_CASE("advice: a softmax that is written out between two products is attention, other exponents are not") {
  const auto job = [](std::string_view behind) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::einsum", 2 * ms, kMain, {.dims = "[[[8, 64, 32], [8, 64, 32]], []]"});
      thread.op("aten::exp", 5 * ms, kMain, {.dims = "[[8, 64, 64]]"});
      thread.op("aten::sum", 3 * ms, kMain, {.dims = "[[8, 64, 64], [], [], []]"});
      thread.op(behind, 3 * ms, kMain, {.dims = "[[8, 64, 64], [8, 64, 1]]"});
      thread.op("aten::einsum", 2 * ms, kMain, {.dims = "[[[8, 64, 64], [8, 64, 32]], []]"});
      thread.op("aten::conv2d", 10 * ms);
    }));
  };
  CHECK(find(job("aten::div"), "attention_by_hand") != nullptr);
  CHECK(find(job("aten::mul"), "attention_by_hand") == nullptr);
}

TEST_CASE("advice: items of a few lengths are samples, tensors of other shapes or far larger ones are parameters") {
  const auto job = [](const std::vector<std::string>& sizes) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 4 * ms, kMain);
      for (int turn = 0; turn < 24; turn++) {
        const std::string dims = "[" + sizes[static_cast<std::size_t>(turn) % sizes.size()] + "]";
        for (const char* name : {"aten::mul", "aten::sum"}) thread.op(name, 50 * us, kMain, {.dims = dims});
      }
    }));
  };
  const Answer samples = job({"[7, 64]", "[12, 64]", "[30, 64]"});
  CHECK(find(samples, "per_sample_loop") != nullptr);
  CHECK(find(samples, "per_parameter_loop") == nullptr);
  CHECK(find(job({"[64, 64]", "[64]", "[256, 64]"}), "per_parameter_loop") != nullptr);
  CHECK(find(job({"[64]", "[256]", "[4096]"}), "per_parameter_loop") != nullptr);
}

}  // namespace
}  // namespace stepscope::diagnose
