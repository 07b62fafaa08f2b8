#include "diagnose/code_places.h"

#include "diagnose/steps_fixture.h"

namespace stepscope::diagnose {
namespace {

constexpr std::string_view kMain = "train.py(30): main";

}  // namespace

// def scores(q, k, v):                                      # line 10
//     odds = q @ k.transpose(-2, -1)                        # 11
//     odds = odds.softmax(-1)                               # 12
//     out = odds @ v                                        # 13
//     return (1 - out) * out                                # 14
TEST_CASE("places: an operator of Python's is between the calls next to it whose lines are known") {
  const std::vector<std::string> here{std::string(kMain), "train.py(10): scores"};
  Run run = run_of([&](Thread& thread) {
    const auto call = [&](std::string_view frame, std::string_view op) {
      thread.call({std::string(frame)}, [&] {
        thread.code(us);
        thread.op(op, us);
        thread.code(us);
      });
    };
    thread.call(here, [&] {
      thread.code(us);
      call("<built-in method transpose of Tensor object at 0x7f00>", "aten::transpose");
      thread.op("aten::matmul", ms);
      call("<built-in method softmax of Tensor object at 0x7f00>", "aten::softmax");
      thread.op("aten::matmul", ms);
      call("torch/_tensor.py(40): wrapped", "aten::rsub");
      thread.op("aten::mul", us);
      thread.op("aten::exp", us);
      thread.code(us);
    });
    thread.op("aten::mul", us, {std::string(kMain)});
  });
  const std::vector<CodeCall> code{{"train.py", 30, "def main", 30},   {"train.py", 10, "(symbol) @", 11},
                                   {"train.py", 10, "transpose", 11},  {"train.py", 10, "softmax", 12},
                                   {"train.py", 10, "(symbol) @", 13}, {"train.py", 10, "(symbol) -", 14},
                                   {"train.py", 10, "(symbol) *", 14}};
  const auto lines = [&](std::vector<CodeCall> source) {
    run.stack_steps[0].code = std::move(source);
    const CodePlaces places(run);
    const Trace& trace = run.traces[0];
    std::vector<std::pair<std::string_view, std::int64_t>> out;
    for (const SliceId op : trace.ops.slice) {
      if (trace.step_at(trace.slices.start_ns[op]) != StepId{0}) continue;
      out.emplace_back(trace.name(op), places.of_operator(trace, op).call_line);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  using Line = std::pair<std::string_view, std::int64_t>;
  CHECK(lines(code) == std::vector<Line>{{"aten::exp", 0},
                                         {"aten::matmul", 11},
                                         {"aten::matmul", 13},
                                         {"aten::mul", 0},
                                         {"aten::mul", 14},
                                         {"aten::rsub", 14},
                                         {"aten::softmax", 12},
                                         {"aten::transpose", 11}});
  // Far from each other, with nothing between them, they may be either.
  const std::vector<CodeCall> far{{"train.py", 10, "(symbol) @", 11}, {"train.py", 10, "(symbol) @", 19}};
  for (const auto& [name, line] : lines(far)) CHECK(line == 0);
  // In a loop the call before an operator may stand behind it, in the turn before.
  const std::vector<CodeCall> loop{{"train.py", 30, "def main", 30},
                                   {"train.py", 10, "(symbol) @", 12},
                                   {"train.py", 10, "softmax", 11},
                                   {"train.py", 10, "transpose", 16},
                                   {"train.py", 10, "(symbol) @", 17}};
  const auto in_loop = lines(loop);
  CHECK(std::count(in_loop.begin(), in_loop.end(), Line("aten::matmul", 17)) == 1);
  CHECK(std::count(in_loop.begin(), in_loop.end(), Line("aten::matmul", 12)) == 0);
}

}  // namespace stepscope::diagnose
