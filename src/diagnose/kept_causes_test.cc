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

TEST_CASE("advice: a loop that makes each moment of the one before by sums and multiples is a scan by hand") {
  const auto job = [](std::string_view other, bool carries, int turns = 40) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::conv1d", 2 * ms, kMain);
      for (int i = 0; i < turns; i++) {
        for (const std::string_view name : {"aten::select", "aten::mul", "aten::rsub", "aten::mul", "aten::add"}) {
          thread.op(name, 10 * us, {"train.py(30): main", "train.py(10): smooth"});
        }
        thread.op(other, 10 * us, {"train.py(30): main", "train.py(10): smooth"});
      }
    });
    run.stack_steps[0].code = {{"train.py", 10, "__next__", 11}};
    if (carries) run.stack_steps[0].code.push_back({"train.py", 10, "(carries) 15", 11});
    return advice_of(run);
  };
  const Answer answer = job("aten::copy_", true);
  const Finding* found = find(answer, "scan_by_hand");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "smooth");
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 1.5);
  CHECK(find(job("aten::sigmoid", true), "scan_by_hand") == nullptr);
  CHECK(find(job("aten::max", true), "scan_by_hand") == nullptr);  // as the best way to each place, found step by step
  CHECK(find(job("aten::copy_", true, 10), "scan_by_hand") == nullptr);
  CHECK(find(job("aten::copy_", false), "scan_by_hand") == nullptr);
  CHECK(find(job("aten::copy_", false), "per_sample_loop") != nullptr);
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

TEST_CASE("advice: what is done to all rows of a table, of which a few are looked up, could be done to these") {
  struct Job {
    std::string_view norm = "2", last = "[-1]", rows = "[600]", last_op = "aten::div";
    bool all_taken = false;
  };
  const auto job = [](const Job& given) {
    return advice_of(run_of([&](Thread& thread) {
      const std::string dims =
          R"(["", ")" + std::string(given.norm) + R"(", ")" + std::string(given.last) + R"(", "True", ""])";
      thread.op("aten::conv1d", 4 * ms, kMain);
      thread.op("aten::linalg_vector_norm", 4 * ms, kMain,
                {.sequence = 7, .dims = "[[6000, 64], [], [], [], []]", .concrete = dims});
      thread.op(given.last_op, 4 * ms, kMain, {.sequence = 8, .dims = "[[6000, 64], [6000, 64]]"});
      const std::string picks = "[[6000, 64], [], " + std::string(given.rows) + "]";
      thread.op("aten::index_select", 2 * ms, kMain, {.dims = picks, .concrete = R"(["", "0", ""])"});
      if (given.all_taken) thread.op("aten::matmul", 1 * ms, kMain, {.dims = "[[32, 64], [64, 6000]]"});
      thread.op("autograd::engine::evaluate_function: DivBackward0", 2 * ms, {}, {.sequence = 8, .fwd_thread = 1});
    }));
  };
  const Answer answer = job({});
  const Finding* found = find(answer, "whole_table");
  REQUIRE(found != nullptr);
  CHECK(evidence(*found, "Looked up") == 600);
  REQUIRE(found->gain);  // of 16 ms 10 become 1
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 7)).epsilon(0.02));
  const Answer by_columns = job({.last = "[0]"});  // needs all rows, the quotient does not: 6 ms become 0.6
  REQUIRE(find(by_columns, "whole_table") != nullptr);
  CHECK(fast_end(*find(by_columns, "whole_table")->gain) == doctest::Approx(at_most(16.0 / 10.6)).epsilon(0.02));
  CHECK(find(job({.rows = "[3000]"}), "whole_table") == nullptr);                                     // not few
  CHECK(find(job({.norm = "1", .last = "[0]", .last_op = "aten::add_"}), "whole_table") == nullptr);  // an update
  CHECK(find(job({.all_taken = true}), "whole_table") == nullptr);  // the others are needed as well
}

TEST_CASE("advice: factors of low rank that are multiplied out to a weight, with the gradient of what is not learned") {
  const auto job = [](std::string_view factors, std::int64_t learned) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::matmul", 2 * ms, kMain, {.sequence = 7, .dims = factors});
      thread.op("aten::add", 2 * ms, kMain, {.sequence = 8, .dims = "[[512, 512], [512, 512], []]"});
      thread.op("aten::linear", 4 * ms, kMain, {.sequence = 9, .dims = "[[4, 32, 512], [512, 512], [512]]"});
      thread.op("autograd::engine::evaluate_function: AddmmBackward0", 8 * ms, {}, {.sequence = 9, .fwd_thread = 1});
    });
    for (const char* path : {"net.a", "net.b", "net.c"}) {
      run.traces[0].module_sizes.push_back({.path = path, .parameters = 1000, .unread = 0, .learned = learned});
    }
    return advice_of(run);
  };
  const std::string_view low = "[[512, 8], [8, 512]]";
  const Answer answer = job(low, 100);
  const Finding* found = find(answer, "low_rank_product");
  REQUIRE(found != nullptr);
  CHECK(evidence(*found, "Rank") == 8);
  REQUIRE(found->gain);  // with 128 rows half of the product's 2 ms and an eighth of the sum's are left at best
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / (0.5 + 0.25 + 4 + 4))).epsilon(0.02));
  const Answer learns = job(low, 1000);
  REQUIRE(find(learns, "low_rank_product") != nullptr);
  CHECK(find(learns, "low_rank_product")->gain->speedup_high < 1.4);
  CHECK(find(job("[[512, 256], [256, 512]]", 100), "low_rank_product") == nullptr);
  // What passes through a narrow layer and a wide one, of a batch as large as that is wide.
  const Answer layers = advice_of(run_of([&](Thread& thread) {
    thread.op("aten::matmul", 2 * ms, kMain, {.dims = low});
    thread.op("aten::add", 2 * ms, kMain, {.dims = "[[512, 512], [512], []]"});
    thread.op("aten::linear", 4 * ms, kMain, {.dims = "[[512, 512], [512, 512], [512]]"});
  }));
  CHECK(find(layers, "low_rank_product") == nullptr);
}

TEST_CASE("advice: rows that are looked up by indexing are told with their backward pass, masks and narrow ones not") {
  const auto job = [](std::string_view inside, std::string_view table, std::string_view added) {
    return advice_of(run_of([&](Thread& thread) {
      thread.nested("aten::index", inside, 4 * ms, {.sequence = 7, .dims = table});
      thread.op("aten::mm", 4 * ms);
      thread.nested("autograd::engine::evaluate_function: IndexBackward0", "aten::_index_put_impl_", 8 * ms,
                    {.sequence = 7, .fwd_thread = 1}, {.dims = added});
    }));
  };
  const std::string_view table = "[[5000, 64], []]", rows = "[[5000, 64], [], [20000, 64], [], []]";
  const Answer answer = job("aten::empty", table, rows);
  const Finding* found = find(answer, "rows_by_index");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Of 4 ms 1.2 stay at best, and of the 8 ms back 4.4.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 9.6)).epsilon(0.02));
  CHECK(evidence(*found, "Rows at once") == 20000);
  CHECK(find(job("aten::nonzero", table, rows), "rows_by_index") == nullptr);
  CHECK(find(job("aten::empty", "[[5000, 8], []]", "[[5000, 8], [], [20000, 8], [], []]"), "rows_by_index") == nullptr);
  CHECK(find(job("aten::empty", table, "[[5000, 64], [], [5000, 64], [], []]"), "rows_by_index") ==
        nullptr);  // columns
  // Elements, picked by an index for each dimension.
  CHECK(find(job("aten::empty", table, "[[5000, 64], [], [20000], [], []]"), "rows_by_index") == nullptr);
}

TEST_CASE("advice: an index of rows that is written out goes with what takes it, an index of single numbers does not") {
  struct Job {
    std::string_view writer = "aten::repeat", given = "[[40000, 1], []]", times = R"(["", "[1, 48]"])";
    std::string_view before = "aten::zeros", between = "aten::zeros_like";
    std::string_view taker = "aten::scatter_add", index = "[[6000, 48], [], [40000, 48], [40000, 48]]";
    std::string_view over = R"(["", "0", "", ""])", type = R"(["float", "Scalar", "long int", "float"])";
  };
  const std::string_view longs = R"(["long int", "ScalarList"])", rows = "[[40000, 1], []]";
  const auto advice_on = [&](const Job& job) {
    return advice_of(run_of([&](Thread& thread) {
      thread.op(job.before, 1 * us, kMain, {.dims = rows, .types = longs});
      thread.op(job.writer, 2 * ms, kMain, {.dims = job.given, .types = longs, .concrete = job.times});
      thread.op(job.between, 1 * us, kMain, {.dims = rows, .types = longs});
      thread.op(job.taker, 4 * ms, kMain, {.sequence = 7, .dims = job.index, .types = job.type, .concrete = job.over});
      thread.op("aten::mm", 4 * ms);
      thread.op("autograd::engine::evaluate_function: ScatterAddBackward0", 6 * ms, {},
                {.sequence = 7, .fwd_thread = 1});
    }));
  };
  const auto is_told = [&](const Job& job) { return find(advice_on(job), "written_out_index") != nullptr; };
  const Answer answer = advice_on({});
  const Finding* found = find(answer, "written_out_index");
  REQUIRE(found != nullptr);
  CHECK(found->where.function == "main");
  CHECK(found->next->ends_with("; or sum them with index_add_(0, index, source)"));
  REQUIRE(found->gain);
  // Of 4 ms 0.32 stay at best, of the 6 ms back 0.24, and none of the 2 ms of the index.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 4.56)).epsilon(0.02));
  CHECK(found->gain->speedup_low == doctest::Approx(16.0 / 6.62).epsilon(0.02));
  CHECK(evidence(*found, "Numbers of the index") == 40000 * 48);
  // Of a maximum the backward pass stays.
  const Answer largest = advice_on({.taker = "aten::scatter_reduce"});
  REQUIRE(find(largest, "written_out_index") != nullptr);
  CHECK(find(largest, "written_out_index")->gain->speedup_low == doctest::Approx(16.0 / 11.28).epsilon(0.02));
  CHECK(find(largest, "written_out_index")->next->ends_with("takes whole rows"));
  // The same by other calls, over the same dimension by its other number.
  const std::string_view gathered = "[[6000, 48], [], [40000, 48], []]";
  CHECK(is_told({.writer = "aten::tile", .taker = "aten::gather", .index = gathered, .over = R"(["", "-2", "", ""])"}));
  CHECK(is_told({.writer = "aten::contiguous", .given = "[[40000, 48], []]", .before = "aten::expand"}));
  CHECK(is_told({.writer = "aten::clone", .given = "[[40000, 48], []]", .before = "aten::expand_as"}));
  CHECK_FALSE(is_told({.writer = "aten::contiguous", .given = "[[40000, 48], []]"}));  // of what is no expanded one
  CHECK_FALSE(is_told({.between = "aten::expand"}));  // another index, which is given as it is
  // Of another size, not as often, of columns, over columns, of whole numbers, of narrow rows, of rows cut off.
  CHECK_FALSE(is_told({.given = "[[20000, 1], []]"}));
  CHECK_FALSE(is_told({.times = R"(["", "[1, 24]"])"}));
  CHECK_FALSE(is_told({.times = R"(["", "[1, 999999999999999999999]"])"}));
  const std::string_view square = "[[6000, 48], [], [48, 48], [48, 48]]";
  CHECK(is_told({.given = "[[48, 1], []]", .index = square}));
  CHECK_FALSE(is_told({.given = "[[48], []]", .times = R"(["", "[48, 1]"])", .index = square}));
  CHECK_FALSE(is_told({.over = R"(["", "1", "", ""])"}));
  CHECK_FALSE(is_told({.type = R"(["long int", "Scalar", "long int", "long int"])"}));
  CHECK_FALSE(is_told({.times = R"(["", "[1, 8]"])", .index = "[[6000, 8], [], [40000, 8], [40000, 8]]"}));
  CHECK_FALSE(is_told({.index = "[[6000, 64], [], [40000, 48], [40000, 64]]"}));
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
