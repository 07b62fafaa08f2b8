// Causes about work on a device, on traces made by hand: what is found, where, what it is worth, and what is no cause.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "diagnose/diagnosis.h"
#include "model/python_frames.h"
#include "model/trace_fixture.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {
namespace device_causes {
namespace {

constexpr std::int64_t us = 1000, ms = 1000 * us, mib = 1 << 20;
constexpr std::int64_t kWayToDevice = 5 * us;

// A thread that launches work on one stream.
class Job {
 public:
  TraceFixture f;
  bool frames = false;

  Job() { f.trace.devices.push_back({.id = 0, .name = "A100", .compute_major = 8}); }

  void begin_step() { begin_ns_ = at_ns_; }
  void end_step() {
    f.slice(cpu_, "user_annotation", "ProfilerStep#" + std::to_string(number_++), begin_ns_, at_ns_ - begin_ns_);
  }
  void launch(std::string_view op, std::int64_t host_ns, std::string_view kernel, std::int64_t device_ns,
              OpIds ids = {}) {
    f.op(cpu_, op, at_ns_, host_ns, ids);
    f.launch(cpu_, "cudaLaunchKernel", at_ns_ + host_ns / 4, host_ns / 2, ++call_);
    f.kernel(gpu_, kernel, start_on_device(at_ns_ + host_ns / 4, device_ns), device_ns, call_);
    at_ns_ += host_ns;
  }
  // The operator calls the runtime for it, and in there waits until it is done, or does not.
  void copy(std::string_view op, std::string_view name, std::int64_t bytes, std::int64_t device_ns, bool waits,
            OpIds ids = {}) {
    const std::int64_t called = at_ns_ + 1 * us, start = start_on_device(called, device_ns);
    const std::int64_t took = waits ? free_ns_ + 1 * us - called : 3 * us;
    f.op(cpu_, op, at_ns_, took + 2 * us, ids);
    f.launch(cpu_, "cudaMemcpyAsync", called, took, ++call_);
    f.device(gpu_, "gpu_memcpy", name, start, device_ns, call_);
    f.trace.device.bytes.set(f.trace.device.size() - 1, bytes);
    at_ns_ = called + took + 1 * us;
  }
  void gap(std::int64_t ns) { at_ns_ += ns; }
  // A function of the program around all that `body` does, where frames are recorded.
  template <class Body>
  void function(std::string_view frame, const Body& body) {
    const std::int64_t from_ns = at_ns_;
    body();
    if (frames) f.slice(cpu_, "python_function", frame, from_ns, at_ns_ - from_ns);
  }
  template <class Body>
  void optimizer(const Body& body) {
    const std::int64_t from_ns = at_ns_;
    at_ns_ += 1 * us;
    body();
    at_ns_ += 1 * us;
    f.slice(cpu_, "user_annotation", "Optimizer.step#Adam.step", from_ns, at_ns_ - from_ns);
  }
  void compute(std::string_view op, std::int64_t ns, OpIds ids = {}) {
    f.op(cpu_, op, at_ns_, ns, ids);
    at_ns_ += ns;
  }
  void call(std::string_view op, std::string_view runtime, std::int64_t ns) {
    f.op(cpu_, op, at_ns_, ns);
    f.launch(cpu_, runtime, at_ns_ + 1 * us, ns - 2 * us, ++call_);
    at_ns_ += ns;
  }

 private:
  std::int64_t start_on_device(std::int64_t called_ns, std::int64_t ns) {
    const std::int64_t start = std::max(called_ns + kWayToDevice, free_ns_);
    free_ns_ = start + ns;
    return start;
  }

  TrackId cpu_ = f.host("1"), gpu_ = f.stream("7");
  std::int64_t at_ns_ = 0, begin_ns_ = 0, free_ns_ = 0, number_ = 1, call_ = 0;
};

// `marked_ns`: what the steps took that nobody recorded.
template <class Step>
Answer advice_on(const Step& step, const std::vector<std::int64_t>& marked_ns = {}) {
  Run run;
  if (!marked_ns.empty()) {
    Trace history;
    std::int64_t at_ns = 1000 * ms;
    for (const std::int64_t ns : marked_ns) {
      const auto number = static_cast<std::int64_t>(history.steps.size()) + 100;
      history.steps.push_back({.name = "step", .number = number, .start_ns = at_ns, .end_ns = at_ns + ns});
      at_ns += ns;
    }
    run.history.push_back(std::move(history));
  }
  Job job;
  for (int i = 0; i < 4; i++) {
    job.begin_step();
    step(job);
    job.end_step();
  }
  Job with_frames;
  with_frames.frames = true;
  with_frames.begin_step();
  step(with_frames);
  with_frames.end_step();
  if (has_python_frames(with_frames.f.trace)) {
    with_frames.f.trace.code = {{"train.py", 1, "", 0}};
    run.stack_steps.push_back(std::move(with_frames.f.trace));
    REQUIRE(derive::derive(run.stack_steps[0], {}));
  }
  run.traces.push_back(std::move(job.f.trace));
  run.traces[0].clock_base_ns = 0;
  REQUIRE(derive::derive(run.traces[0], {}));
  derive::derive_run(run, 1);
  const simulate::Predictor predictor(run);
  auto made = advice(run, predictor);
  if (!made) FAIL(to_text(made.error()));
  return *std::move(made);
}

// The step that advice is about, where all others take `usual_ns`.
template <class Step>
double step_ms(const Step& step, std::int64_t usual_ns) {
  const Answer answer = advice_on(step, std::vector<std::int64_t>(100, usual_ns));
  return static_cast<double>(std::get<std::int64_t>(answer.scalar("step_ns")->value)) / static_cast<double>(ms);
}

const Finding* find(const Answer& answer, std::string_view id) {
  const auto found =
      std::find_if(answer.findings.begin(), answer.findings.end(), [&](const Finding& one) { return one.id == id; });
  return found == answer.findings.end() ? nullptr : &*found;
}

double evidence(const Finding& finding, std::string_view text) {
  for (const Evidence& one : finding.evidence) {
    if (one.text != text) continue;
    if (const auto* number = std::get_if<std::int64_t>(&one.value)) return static_cast<double>(*number);
    return std::get<double>(one.value);
  }
  FAIL("no evidence ", text);
  return 0;
}

constexpr std::string_view kElementwise = "vectorized_elementwise_kernel";
constexpr std::string_view kPageable = "Memcpy HtoD (Pageable -> Device)", kPinned = "Memcpy HtoD (Pinned -> Device)";

TEST_CASE("advice: one operator in place of a chain that a host launches takes as long to launch as one of them") {
  const Answer answer = advice_on([](Job& job) {
    for (int i = 0; i < 8; i++) job.launch("aten::mul", 40 * us, "mul_kernel", 5 * us, {.dims = "[[1048576], []]"});
    job.compute("aten::sort", 80 * us);
  });
  const Finding* found = find(answer, "elementwise_chain");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low > 2.9);  // 400 us to 40 + 80, or less where the rest is relieved
  CHECK(found->gain->speedup_low < 3.6);
}

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

TEST_CASE("advice: work that is shorter than its launch leaves the device waiting, longer work does not") {
  const auto step_of = [](std::int64_t device_ns) {
    return [device_ns](Job& job) {
      for (int i = 0; i < 50; i++) job.launch("aten::mul", 20 * us, kElementwise, device_ns);
    };
  };
  const Answer answer = advice_on(step_of(3 * us));
  REQUIRE(!answer.findings.empty());
  const Finding& first = answer.findings[0];
  CHECK(first.id == "small_launches");
  CHECK(evidence(first, "Launches per step") == 50);
  CHECK(evidence(first, "Median of their work on the device") == 3 * us);
  REQUIRE(first.gain);
  CHECK(first.gain->speedup_low == doctest::Approx(1 / 0.6).epsilon(0.05));
  CHECK(find(advice_on(step_of(40 * us)), "small_launches") == nullptr);
}

TEST_CASE("advice: an optimizer of many operators comes before what launches them like anything else") {
  const auto advice_with = [](int parameters) {
    const Answer answer = advice_on([&](Job& job) {
      for (int i = 0; i < 60; i++) job.launch("aten::mm", 30 * us, "gemm", 4 * us);
      job.optimizer([&] {
        for (int i = 0; i < parameters; i++) {
          for (const std::string_view name : {"aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::div"})
            job.launch(name, 30 * us, kElementwise, 4 * us);
        }
      });
    });
    REQUIRE(find(answer, "small_launches") != nullptr);
    REQUIRE(find(answer, "unfused_optimizer") != nullptr);
    return answer;
  };
  const Answer much = advice_with(20), little = advice_with(3);
  CHECK(much.findings[0].id == "unfused_optimizer");
  CHECK(much.findings[1].id == "small_launches");
  CHECK(much.findings[1].gain->speedup_high > much.findings[0].gain->speedup_high);
  CHECK(little.findings[0].id == "small_launches");
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

TEST_CASE("advice: an operator on the host in a job whose work is on a device") {
  const auto step_of = [](bool device) {
    return [device](Job& job) {
      if (device) job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
      job.compute("aten::sort", 5 * ms);
    };
  };
  const Answer answer = advice_on(step_of(true));
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "op_on_cpu");
  CHECK(answer.findings[0].where.op == "aten::sort");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 3);
  CHECK(find(advice_on(step_of(false)), "op_on_cpu") == nullptr);
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

TEST_CASE("advice: memory taken from the device in the steps") {
  const Answer answer = advice_on([](Job& job) {
    job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
    job.call("aten::empty", "cudaMalloc", 4 * ms);
  });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "device_allocation");
  CHECK(answer.findings[0].where.op == "aten::empty");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 2);
  CHECK(find(answer, "op_on_cpu") == nullptr);
}

TEST_CASE("advice: torch's allocator that gives memory back inside of an operator has run short") {
  const Answer answer = advice_on([](Job& job) {
    job.launch("aten::mul", 20 * us, kElementwise, 1 * ms);
    job.call("aten::empty", "cudaFree", 3 * ms);
  });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "allocator_retries");
  REQUIRE(answer.findings[0].gain);
  CHECK(answer.findings[0].gain->speedup_low > 2);
  CHECK(find(answer, "device_allocation") == nullptr);
}

TEST_CASE("advice: the first launch of a kernel that loads its code is no property of a step") {
  const auto step_of = [](bool always) {
    return [always, step = 0](Job& job) mutable {
      job.launch("aten::mul", 20 * us, kElementwise, 10 * us);
      job.launch("aten::mm", always || step == 0 ? 20 * ms : 20 * us, "ampere_bf16_s16816gemm", 10 * us);
      step++;
    };
  };
  auto once = step_of(false), always = step_of(true);
  const Answer answer = advice_on([&](Job& job) { once(job); });
  REQUIRE(!answer.findings.empty());
  CHECK(answer.findings[0].id == "device_start_up");
  CHECK(answer.findings[0].where.op == "aten::mm");
  CHECK(evidence(answer.findings[0], "Kernels launched for the first time") == 1);
  const Answer slow = advice_on([&](Job& job) { always(job); });  // the others are as long: its code was not missing
  const Finding* found = find(slow, "device_start_up");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high < 1.2);
}

TEST_CASE("advice: products of float32 without tensor cores, by the names of their kernels") {
  const auto found_for = [](std::string_view kernel) {
    return advice_on([&](Job& job) { job.launch("aten::mm", 20 * us, kernel, 10 * ms); });
  };
  const Answer answer = found_for("ampere_sgemm_128x64_tn");
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].id == "no_tensor_cores");
  CHECK(answer.findings[0].where.op == "aten::mm");
  REQUIRE(answer.findings[0].gain);
  // Of an A100: 156 TFLOP/s in place of 19.5, or half as much more.
  CHECK(answer.findings[0].gain->speedup_high == doctest::Approx(8).epsilon(0.05));
  CHECK(answer.findings[0].gain->speedup_low == doctest::Approx(4).epsilon(0.05));
  CHECK(found_for("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_ffma_cublas").findings.size() == 1);
  CHECK(found_for("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x16_cublas").findings.empty());
  CHECK(found_for("ampere_s1688gemm_fp16_128x64_tn").findings.empty());
}

TEST_CASE("advice: what a library does to bring tensors into its own order is a layout that the program chose") {
  const auto step_with = [](std::string_view kernel) {
    return [=](Job& job) {
      job.launch("aten::cudnn_convolution", 20 * us, kernel, 3 * ms);
      job.launch("aten::cudnn_convolution", 20 * us, "sm90_xmma_fprop_implicit_gemm_bf16", 7 * ms);
    };
  };
  const Answer answer = advice_on(step_with("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16>"));
  const Finding* found = find(answer, "layout_copies");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->where.op == "aten::cudnn_convolution");
  CHECK(found->gain->speedup_high == doctest::Approx(10.0 / 7).epsilon(0.02));
  CHECK(found->next.value_or("").find("channels_last") != std::string::npos);
  CHECK(find(advice_on(step_with(kElementwise)), "layout_copies") == nullptr);
}

TEST_CASE("advice: a batch norm by planes is the faster at best for channels that lie side by side") {
  const auto high_of = [](std::string_view norm, std::string_view dims = "[[8, 64, 56, 56]]") {
    const Answer answer = advice_on([=](Job& job) {
      job.launch("aten::cudnn_convolution", 20 * us, "cudnn::engines_precompiled::nchwToNhwcKernel<__half>", 2 * ms);
      job.launch("aten::cudnn_convolution", 20 * us, "sm90_xmma_fprop_implicit_gemm_bf16", 4 * ms);
      job.launch("aten::native_batch_norm", 20 * us, norm, 4 * ms, {.dims = dims});
    });
    const Finding* found = find(answer, "layout_copies");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    CHECK(found->where.op == "aten::cudnn_convolution");
    CHECK(found->gain->speedup_low == doctest::Approx(10.0 / 8.2).epsilon(0.02));
    const bool has_norms = norm.find("channels_last") == norm.npos && dims.find("56") != dims.npos;
    if (has_norms) {
      CHECK(evidence(*found, "Of these batch norms by planes, which may be faster then") ==
            doctest::Approx(0.4).epsilon(0.02));
    }
    return found->gain->speedup_high;
  };
  CHECK(high_of("void at::native::batch_norm_backward_kernel<float>") == doctest::Approx(10 / 5.4).epsilon(0.02));
  CHECK(high_of("void at::native::batch_norm_backward_kernel<float>", "[[8, 64, 3136]]") ==
        doctest::Approx(1.25).epsilon(0.02));
  CHECK(high_of("void at::native::batch_norm_backward_elemt_channels_last_kernel") ==
        doctest::Approx(1.25).epsilon(0.02));
}

TEST_CASE("advice: a step in which a host waits for the device that it was ahead of takes no longer than the others") {
  const auto step = [](Job& job) { job.launch("aten::mm", 1 * ms, "ampere_bf16_s16816gemm", 10 * ms); };
  std::vector<std::int64_t> ahead, late;
  for (int i = 0; i < 160; i++) {
    ahead.push_back(i % 8 == 2 ? 73 * ms : 1 * ms);  // of eight steps 80 ms, as the device takes
    late.push_back(i % 8 == 2 ? 90 * ms : 10 * ms);
  }
  CHECK(find(advice_on(step, ahead), "long_steps") == nullptr);
  CHECK(find(advice_on(step, late), "long_steps") != nullptr);
}

TEST_CASE("advice: what recording costs a host beside its device's work is known from how long steps take without it") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 10 * us, "gemm", 3 * ms);
    for (int i = 0; i < 40; i++) job.compute("aten::cpu_work", 50 * us);  // hidden behind the device
    job.copy("aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)", 4, 1 * us, true);
    for (int i = 0; i < 60; i++) job.compute("aten::cpu_work", 50 * us);
  };
  const double recorded_ms = step_ms(step, 100 * ms);
  REQUIRE(recorded_ms == doctest::Approx(6.03).epsilon(0.01));
  CHECK(step_ms(step, 5700 * us) == doctest::Approx(5.7).epsilon(0.01));
}

TEST_CASE("advice: a device that works on when the last step has ended makes that step no longer than the others") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 10 * us, "gemm", 3 * ms);
    job.copy("aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)", 4, 1 * us, true);
    for (int i = 0; i < 60; i++) job.compute("aten::cpu_work", 50 * us);
    job.launch("aten::mul", 10 * us, "mul_kernel", 2 * ms);
  };
  // The host takes 6.03 ms for the first of four steps and 8.03 ms for each other, and then the device 2 ms.
  const double recorded_ms = step_ms(step, 100 * ms);
  REQUIRE(recorded_ms == doctest::Approx(8.03).epsilon(0.01));
  CHECK(step_ms(step, 7530 * us) == doctest::Approx(recorded_ms).epsilon(0.01));
}

TEST_CASE("advice: where the device alone takes the time, what its host costs is not taken off again and again") {
  const auto step = [](Job& job) {
    job.launch("aten::mm", 20 * us, "ampere_sgemm_128x64_tn", 6 * ms);
    for (int i = 0; i < 100; i++) job.compute("aten::cpu_work", 50 * us);
  };
  const Answer answer = advice_on(step, std::vector<std::int64_t>(100, 5800 * us));
  const Finding* found = find(answer, "no_tensor_cores");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  // Then the host binds: with 5.02 ms as recorded, 3.8 ms if all were taken off that notes can cost.
  CHECK(found->gain->speedup_high < 1.35);
}

TEST_CASE("advice: what recording costs the host of a busy device is known from steps that did not wait for it") {
  // Recorded, the host takes 4 ms of small operators in a step; in steps that nobody records 2.
  const auto step = [](Job& job) {
    job.launch("aten::mm", 20 * us, "ampere_sgemm_128x64_tn", 8 * ms);
    for (int i = 0; i < 400; i++) job.compute("aten::view", 10 * us);
  };
  std::vector<std::int64_t> marked;
  for (int i = 0; i < 160; i++) marked.push_back(i % 20 < 3 ? 2 * ms : 8 * ms);
  const auto low_of = [&](const Answer& answer) {
    const Finding* found = find(answer, "no_tensor_cores");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return found->gain->speedup_high;
  };
  CHECK(low_of(advice_on(step)) == doctest::Approx(2).epsilon(0.1));  // then the host binds, as it was recorded
  CHECK(low_of(advice_on(step, marked)) > 3);
}

}  // namespace
}  // namespace device_causes
}  // namespace stepscope::diagnose
