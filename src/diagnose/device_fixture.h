// A thread that launches work on one stream of a device, step by step, and what is advised on it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "diagnose/diagnosis.h"
#include "diagnose/findings_fixture.h"
#include "model/python_frames.h"
#include "model/trace_fixture.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {
namespace device_causes {

inline constexpr std::int64_t us = 1000, ms = 1000 * us, mib = 1 << 20;
inline constexpr std::int64_t kWayToDevice = 5 * us;

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

inline constexpr std::string_view kElementwise = "vectorized_elementwise_kernel";
inline constexpr std::string_view kPageable = "Memcpy HtoD (Pageable -> Device)",
                                  kPinned = "Memcpy HtoD (Pinned -> Device)";

}  // namespace device_causes
}  // namespace stepscope::diagnose
