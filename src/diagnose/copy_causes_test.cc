// Causes about copies between the host and a device, and waits for them, on traces made by hand.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/device_fixture.h"

namespace stepscope::diagnose {
namespace device_causes {
namespace {

TEST_CASE("advice: a copy from pageable memory keeps the host waiting, one from pinned memory does not") {
  const auto step_of = [](std::string_view name, std::int64_t bytes, bool waits) {
    return [=](Job& job) {
      job.copy("aten::copy_", name, bytes, 1 * ms, waits);
      job.launch("aten::mul", 20 * us, kElementwise, 19 * ms);
    };
  };
  const Answer answer = advice_on(step_of(kPageable, 8 * mib, true));
  const Finding* found = find(answer, "pageable_copies");
  REQUIRE(found != nullptr);
  CHECK(found->where.op == "aten::copy_");
  CHECK(evidence(*found, "Copies") == 4);
  REQUIRE(found->gain);
  // 8.4 GB/s; from pinned memory a link of PCI Express 4 carries between 10 and 25.
  CHECK(found->gain->speedup_high == doctest::Approx(20.0 / 19.34).epsilon(0.01));
  CHECK(found->gain->speedup_low < found->gain->speedup_high);

  CHECK(find(advice_on(step_of(kPinned, 8 * mib, true)), "pageable_copies") != nullptr);
  CHECK(find(advice_on(step_of(kPinned, 8 * mib, false)), "pageable_copies") == nullptr);
  CHECK(find(advice_on(step_of(kPageable, 4096, true)), "pageable_copies") == nullptr);
}

TEST_CASE("advice: copies that fill the device's time are named with their share of it") {
  const Answer answer = advice_on([](Job& job) {
    job.copy("aten::copy_", kPinned, 32 * mib, 9 * ms, false);
    job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
  });
  REQUIRE(!answer.findings.empty());
  const Finding& first = answer.findings[0];
  CHECK(first.id == "host_copies");
  CHECK(evidence(first, "Of the device's time from its first work to its last") == doctest::Approx(0.9).epsilon(0.01));
  CHECK(evidence(first, "Bandwidth") == doctest::Approx(32.0 * mib / (9 * ms)));
  REQUIRE(first.gain);
  // From what one millisecond of computing hides, to none of it copied.
  CHECK(first.gain->speedup_low == doctest::Approx(10.0 / 9).epsilon(0.02));
  CHECK(first.gain->speedup_high > 5);
}

TEST_CASE("advice: what every step copies again in its middle is no batch") {
  const auto step_of = [](bool first, bool grows) {
    return [=, bytes = 1 * mib](Job& job) mutable {
      if (!first) job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
      job.copy("aten::copy_", kPinned, bytes, 500 * us, false);
      job.launch("aten::mul", 20 * us, kElementwise, 9 * ms);
      if (grows) bytes += mib;
    };
  };
  const auto again = [&](bool first, bool grows) {
    auto step = step_of(first, grows);
    return advice_on([&](Job& job) { step(job); });
  };
  const Answer answer = again(false, false);
  const Finding* found = find(answer, "repeated_copies");
  REQUIRE(found != nullptr);
  CHECK(found->where.op == "aten::copy_");
  CHECK(evidence(*found, "Bytes per step") == mib);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(10.5 / 10).epsilon(0.01));
  CHECK(find(again(true, false), "repeated_copies") == nullptr);
  CHECK(find(again(false, true), "repeated_copies") == nullptr);
}

TEST_CASE("advice: a value that is read in mid-step stops the host, and the device behind it") {
  const auto step_of = [](bool reads) {
    return [reads](Job& job) {
      for (int i = 0; i < 10; i++) {
        job.launch("aten::mul", 60 * us, kElementwise, 80 * us);
        if (reads) job.copy("aten::item", "Memcpy DtoH (Device -> Pageable)", 4, 2 * us, true);
      }
    };
  };
  const Answer answer = advice_on(step_of(true));
  const Finding* found = find(answer, "hidden_sync");
  REQUIRE(found != nullptr);
  CHECK(found->where.op == "aten::item");
  CHECK(evidence(*found, "Waits per step") == 10);
  REQUIRE(found->gain);
  // Of some 104 us, 82 are work, and 5 the way to the device, which the thread's own time does not hold.
  CHECK(found->gain->speedup_low > 1.15);
  CHECK(found->gain->speedup_high < 104.0 / 82);
  CHECK(find(advice_on(step_of(false)), "hidden_sync") == nullptr);
}

TEST_CASE("advice: values that are read of a device which has nothing to do cost the reading") {
  const Answer answer = advice_on([](Job& job) {
    for (int i = 0; i < 20; i++) {
      job.launch("aten::mul", 20 * us, kElementwise, 2 * us);
      job.copy("aten::item", "Memcpy DtoH (Device -> Pageable)", 4, 1 * us, true);
    }
  });
  const Finding* found = find(answer, "hidden_sync");
  REQUIRE(found != nullptr);
  CHECK(found->where.op == "aten::item");
  REQUIRE(found->gain);
  // 20 us of 29 are left, or a tenth of the reading more.
  CHECK(found->gain->speedup_low > 29.0 / 22);
  CHECK(found->gain->speedup_high < 29.1 / 20);
}

TEST_CASE("advice: what a function fetches from the device to work on it goes with that work") {
  const auto finding = [](bool in_function) {
    const Answer answer = advice_on([&](Job& job) {
      job.function("train.py(30): main", [&] {
        const auto fetch = [&] { job.copy("aten::to", "Memcpy DtoH (Device -> Pageable)", 16 * mib, 3 * ms, true); };
        job.launch("aten::mm", 20 * us, "gemm", 2 * ms);
        if (!in_function) fetch();
        job.function("train.py(10): count", [&] {
          if (in_function) fetch();
          job.compute("aten::empty", 10 * us);
          job.gap(4 * ms);
          job.compute("aten::empty", 10 * us);
        });
      });
    });
    const Finding* found = find(answer, "python_in_step");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return *found;
  };
  const Finding with = finding(true), without = finding(false);
  CHECK(with.where.function == "count");
  CHECK(evidence(with, "Fetched from the device for it") == 16 * mib);
  CHECK(with.next.value_or("").starts_with("Do it on the device"));
  CHECK(with.gain->speedup_low > 2.5);  // 2 ms of 9 stay, and a little of the 4 in Python
  CHECK(without.gain->speedup_high < 2);
  CHECK_FALSE(without.next.value_or("").starts_with("Do it on the device"));
}

TEST_CASE("advice: copies that take its input from the device, and its result there, go with an operator on the host") {
  // `brought`: of how many numbers the copies are; the operator has 32,768. `only_there`: what it is given was here.
  const auto gain = [](int brought, bool only_there = false) {
    const std::string dims = "[[" + std::to_string(brought) + "]]";
    const Answer answer = advice_on([&](Job& job) {
      job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
      if (!only_there) {
        job.copy("aten::to", "Memcpy DtoH (Device -> Pageable)", 4L * brought, 1 * ms, true, {.dims = dims});
      }
      job.compute("aten::t", 2 * us);
      job.compute("aten::sort", 5 * ms, {.dims = "[[32768]]"});
      job.copy("aten::to", kPageable, 4L * brought, 1 * ms, true, {.dims = dims});
      job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
    });
    REQUIRE(!answer.findings.empty());
    CHECK(answer.findings[0].id == "op_on_cpu");
    CHECK(answer.findings[0].where.op == "aten::sort");
    REQUIRE(answer.findings[0].gain);
    return *answer.findings[0].gain;
  };
  // 9 ms a step: two of work on the device, and two of copies where these stay.
  CHECK(gain(16384).speedup_high < 9.1 / 4);
  CHECK(gain(32768).speedup_low > 9.0 / 2.6);
  CHECK(gain(32768).speedup_high < 9.1 / 2);
  CHECK(gain(32768, true).speedup_high < 8.1 / 3);
}

TEST_CASE("advice: the longer a host waits for its device where nobody records, the more a wait in mid-step costs") {
  // The host asks for 4 ms of work, does something else for 3, waits, and launches for 4 more. Where nobody records it
  // takes half of that, so the wait is 2.5 ms in place of 1.
  const Answer answer = advice_on(
      [](Job& job) {
        job.launch("aten::mm", 20 * us, "gemm", 4 * ms);
        for (int i = 0; i < 300; i++) job.compute("aten::view", 10 * us);
        job.copy("aten::item", "Memcpy DtoH (Device -> Pageable)", 4, 2 * us, true);
        for (int i = 0; i < 400; i++) job.launch("aten::mul", 10 * us, kElementwise, 1 * us);
      },
      std::vector<std::int64_t>(100, 6050 * us));
  const Finding* found = find(answer, "hidden_sync");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low > 6.05 / 5);     // with 1 ms less it would take 5.05
  CHECK(found->gain->speedup_high < 6.05 / 4.3);  // the device takes 4.4
}

TEST_CASE("advice: copies out of pageable memory that were slower than usual are as fast as the steps say") {
  const auto step = [](Job& job) {
    job.copy("aten::copy_", kPageable, 8 * mib, 4 * ms, true);
    job.launch("aten::mul", 1 * ms, kElementwise, 1 * ms);
    for (int i = 0; i < 10; i++) job.compute("aten::cpu_work", 100 * us);
  };
  REQUIRE(step_ms(step, 100 * ms) == doctest::Approx(6.0).epsilon(0.02));
  // What is left of the copy is what its fix can give: the host takes 2 ms for all else, or less without its notes.
  const Answer short_steps = advice_on(step, std::vector<std::int64_t>(100, 3500 * us));
  const Finding* found = find(short_steps, "pageable_copies");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high > 3.5 / 2.6);
  CHECK(found->gain->speedup_high < 3.5 / 1.4);
  CHECK(step_ms(step, 1 * us) == doctest::Approx(6.0).epsilon(0.2));  // no copy can have been that slow
  CHECK(step_ms(step, 3500 * us) == doctest::Approx(3.5).epsilon(0.01));
  CHECK(step_ms(step, 5800 * us) == doctest::Approx(5.8).epsilon(0.01));
}

}  // namespace
}  // namespace device_causes
}  // namespace stepscope::diagnose
