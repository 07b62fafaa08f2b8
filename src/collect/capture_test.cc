#include "collect/capture.h"

#include <doctest/doctest.h>

#include <string>

namespace stepscope::collect {
namespace {

// What the hooks get to see of a text of windows; "" where it is refused.
std::string steps(std::string_view text) {
  const auto windows = parse_steps(text);
  return windows ? to_text(*windows) : "";
}

std::string ranks(std::string_view text) { return parse_ranks(text).value_or(""); }

std::string many(std::size_t count, const std::string& item) {
  std::string out = item;
  for (std::size_t i = 1; i < count; ++i) out += "," + item;
  return out;
}

}  // namespace

TEST_CASE("windows of steps are read as people write them") {
  CHECK(steps("10:15") == "10:15");
  CHECK(steps("7") == "7:8");
  CHECK(steps(" 40:45 , 10:15 ") == "10:15,40:45");
  CHECK(steps("10:15,12:20,19:21") == "10:21");  // one where they overlap
  CHECK(steps("10:15,11:12") == "10:15");
  CHECK(steps("10:15,15:20") == "10:15,15:20");  // two where they only touch
  CHECK(steps("2147483646") == "2147483646:2147483647");
}

TEST_CASE("what is no window of steps is refused with an example") {
  for (const char* bad : {"",
                          ":",
                          "5:",
                          ":5",
                          "5:5",
                          "6:5",
                          "-1:4",
                          "-0:4",
                          "+1:4",
                          "a:b",
                          "1:2:3",
                          "10:15,",
                          ",10:15",
                          "99999999999:2",
                          "2147483647",
                          "1:2147483648",
                          "99999999999999999999999",
                          "1.5",
                          "1e3",
                          "１:２",
                          "10 15",
                          "0x10",
                          "\xff\xfe",
                          "10:15;40:45"}) {
    const auto windows = parse_steps(bad);
    REQUIRE_MESSAGE(!windows.has_value(), bad);
    CHECK(windows.error().kind == ErrorKind::usage);
    CHECK(windows.error().hint.find("10:15") != std::string::npos);
  }
}

TEST_CASE("windows are limited, as the environment is") {
  std::string all = "0";
  for (std::size_t i = 1; i < kMostWindows; ++i) all += "," + std::to_string(i * 10);
  CHECK(parse_steps(all).has_value());
  CHECK_FALSE(parse_steps(all + ",9999999").has_value());
  CHECK(parse_steps(many(100'000, "1:5")).has_value());  // one window, said often
}

TEST_CASE("a schedule means what torch.profiler.schedule means") {
  CHECK(parse_schedule("wait=5,warmup=2,active=6,repeat=2").value() == Cycle{7, 6, 13, 2});
  CHECK(parse_schedule("active=1,warmup=0,wait=0").value() == Cycle{0, 1, 1, 0});
  CHECK(parse_schedule("wait=5,warmup=2,active=6,skip_first=10").value() == Cycle{17, 6, 13, 0});
  CHECK(parse_schedule("wait=5, warmup=2, active=6, skip_first=10, skip_first_wait=1").value() == Cycle{12, 6, 13, 0});
  for (const char* bad :
       {"", "wait=5", "wait=5,warmup=2", "wait=5,warmup=2,active=0", "wait=5,warmup=2,active=-1",
        "wait=5,wait=5,warmup=2,active=6", "wait=5,warmup=2,active=6,repeats=1", "5,2,6",
        "wait=5,warmup=2,active=", "wait=5,warmup=2,active=99999999999", "wait:5,warmup:2,active:6"}) {
    CHECK_MESSAGE(!parse_schedule(bad).has_value(), bad);
  }
  CHECK(parse_schedule("wait=5,warmup=2,active=6,repeats=1").error().message.find("'repeat'") != std::string::npos);
}

TEST_CASE("the cycle of a schedule records the steps that torch's function says") {
  // torch's own rule, written down again from its documentation.
  const auto records = [](int step, int wait, int warmup, int active, int repeat, int skip, bool skip_wait) {
    if (step < skip) return false;
    step -= skip;
    if (skip_wait) step += wait;
    const int length = wait + warmup + active;
    if (repeat > 0 && step / length >= repeat) return false;
    return step % length >= wait + warmup;
  };
  for (const int skip_wait : {0, 1}) {
    for (const int repeat : {0, 1, 3}) {
      const auto cycle = parse_schedule("wait=3,warmup=2,active=4,skip_first=5,repeat=" + std::to_string(repeat) +
                                        ",skip_first_wait=" + std::to_string(skip_wait));
      REQUIRE(cycle.has_value());
      for (int step = 0; step < 100; ++step) {
        const std::int64_t since = step - cycle->first;
        const bool is_in = since >= 0 && since % cycle->period < cycle->active &&
                           (cycle->repeat == 0 || since / cycle->period < cycle->repeat);
        CHECK(is_in == records(step, 3, 2, 4, repeat, 5, skip_wait != 0));
      }
    }
  }
}

TEST_CASE("seconds") {
  CHECK(parse_seconds("2").value() == Stretch{3, 5});
  CHECK(parse_seconds("0.5:2").value() == Stretch{0.5, 2});
  CHECK(parse_seconds("100000:100002").value() == Stretch{100000, 100002});  // late, not long
  for (const char* bad : {"", ":", "0", "5:5", "6:5", "nan", "1:inf", "1:nan", "-1", "-0:1", "3:1e9", "1e400",
                          "0:86401", "1:2:3", "2s", "1,2"}) {
    CHECK_MESSAGE(!parse_seconds(bad).has_value(), bad);
  }
  CHECK(stretch_after(120.0, 15).value() == Stretch{120, 135});
  CHECK(stretch_after(std::nullopt, 15).value() == Stretch{3, 18});
  CHECK_FALSE(stretch_after(0.0, 0).has_value());
  CHECK_FALSE(stretch_after(0.0, 1e6).has_value());
  CHECK(parse_duration("0.5").value() == 0.5);
  CHECK(parse_duration("2m").value() == 120);
  for (const char* bad : {"", "-1", "nan", "inf", "15x", "1e300"}) CHECK_FALSE(parse_duration(bad).has_value());
}

TEST_CASE("ranks") {
  CHECK(ranks("all") == "all");
  CHECK(ranks("0") == "0");
  CHECK(ranks("last,8,0-3, 2") == "0,1,2,3,8,last");
  CHECK(ranks("last") == "last");
  for (const char* bad : {"", "first", "0,all", "all,last", "3-1", "-1", "1-", "1--2", "0-1-2", "0,,1", "1.5", "LAST",
                          "99999999999", "０", "0 1"}) {
    const auto read = parse_ranks(bad);
    REQUIRE_MESSAGE(!read.has_value(), bad);
    CHECK(read.error().hint.find("0,2-4,last") != std::string::npos);
  }
  CHECK(parse_ranks("0-4095").has_value());
  CHECK_FALSE(parse_ranks("0-4096").has_value());
  CHECK_FALSE(parse_ranks("0-2147483647").has_value());  // refused at once, not counted out
}

TEST_CASE("what to record with") {
  CHECK(to_text(parse_with("stack,shapes,stack").value()) == "shapes,stack");
  CHECK(to_text(parse_with("execution-trace, flops").value()) == "flops,execution-trace");
  for (const char* bad : {"", "shapes,", "Shapes", "none,shapes", "execution_trace"}) {
    CHECK_FALSE(parse_with(bad).has_value());
  }
  CHECK(to_text(parse_with("none").value()).empty());
  CHECK(parse_with("shape").error().message.find("did you mean 'shapes'") != std::string::npos);
}

TEST_CASE("budgets") {
  CHECK(parse_budget("1%").value() == Budget{0.01, std::nullopt});
  CHECK(parse_budget("512MB, 0.5 %").value() == Budget{0.005, 512'000'000});
  CHECK(parse_budget("1.5GiB").value().bytes == 1'610'612'736);
  CHECK(parse_budget("64 kB").value().bytes == 64'000);
  for (const char* bad : {"", "1", "0%", "101%", "-1%", "nan%", "%", "MB", "0MB", "1e30GB", "5 apples", "1%,2%",
                          "1MB,2GB", "1%,", "0.0000001kB"}) {
    CHECK_MESSAGE(!parse_budget(bad).has_value(), bad);
  }
}

TEST_CASE("switches") {
  for (const char* yes : {"true", "1", "Yes", "ON"}) CHECK(parse_switch(yes).value());
  for (const char* no : {"false", "0", "no", "Off"}) CHECK_FALSE(parse_switch(no).value());
  CHECK_FALSE(parse_switch("").has_value());
  CHECK_FALSE(parse_switch("2").has_value());
}

TEST_CASE("hostile text is shown short and without control characters") {
  CHECK(quoted("a\x1b[31m\n") == "'a?[31m?'");
  CHECK(quoted(std::string(1000, 'x')) == "'" + std::string(60, 'x') + "…'");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "ü";
  CHECK(quoted("a" + wide).find("\xC3…") == std::string::npos);  // cut between characters
  CHECK(parse_steps(std::string(1 << 20, '9')).error().message.size() < 200);
}

TEST_CASE("the text for the hooks") {
  Capture capture;
  CHECK(to_text(capture) == "ranks=all with=shapes,memory,modules");
  capture.steps = {{10, 15}, {40, 45}};
  capture.ranks = "0,last";
  capture.with = parse_with("stack").value();
  capture.budget = {0.007, 512'000'000};
  CHECK(to_text(capture) == "steps=10:15,40:45 ranks=0,last with=stack budget=0.007 budget_bytes=512000000");
  capture = {};
  capture.cycle = Cycle{7, 6, 13, 2};
  CHECK(to_text(capture).find("cycle=7:6:13:2 ") != std::string::npos);
  capture = {};
  capture.seconds = Stretch{1'000'000.5, 1'000'002};
  CHECK(to_text(capture).find("seconds=1000000.5:1000002 ") != std::string::npos);
  capture = {};
  capture.on_request = true;
  CHECK(to_text(capture).find("steps=none ") != std::string::npos);
}

}  // namespace stepscope::collect
