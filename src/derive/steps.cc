// Steps: where one round of training or serving begins and ends, and which device work belongs to it.
//
// The first kind of mark that is there wins: ProfilerStep annotations, optimizer steps, serving marks, an annotation
// that repeats through the recording, else the whole recording as one step. Device work belongs to the step in which
// its launch call started (without one: in which it started itself).
#include "derive/step_marks.h"

#include <algorithm>

#include "derive/passes.h"

namespace stepscope::derive {
namespace {

Step make_step(const Trace& trace, SliceId id) {
  Step step;
  step.name = std::string(trace.name(id));
  step.start_ns = trace.slices.start_ns[id];
  step.end_ns = trace.slices.end_ns(id);
  step.track = trace.slices.track[id];
  return step;
}

std::vector<Step> steps_of(const Trace& trace, const std::vector<SliceId>& marks, bool numbered) {
  std::vector<Step> steps;
  for (const SliceId id : marks) {
    Step step = make_step(trace, id);
    step.number = numbered ? number_after_hash(step.name) : static_cast<std::int64_t>(steps.size());
    steps.push_back(std::move(step));
  }
  return steps;
}

// An optimizer step ends a round: round k runs from the end of the one before to the end of this one. The first began
// before the recording as far as anyone can tell, and what follows the last optimizer step is the start of another.
std::vector<Step> rounds_of(const Trace& trace, const std::vector<SliceId>& marks, const Window& host) {
  std::vector<Step> steps;
  std::int64_t start = host.start_ns;
  const auto add = [&](std::int64_t end, TrackId track, bool partial) {
    Step step;
    step.number = static_cast<std::int64_t>(steps.size());
    step.name = "step " + std::to_string(step.number);
    step.start_ns = start;
    step.end_ns = end;
    step.track = track;
    step.partial = partial;
    steps.push_back(std::move(step));
    start = end;
  };
  for (const SliceId id : marks) add(trace.slices.end_ns(id), trace.slices.track[id], steps.empty());
  const TrackId track = trace.slices.track[marks.back()];
  if (starts_after(trace, track, start)) add(host.end_ns, track, true);
  return steps;
}

std::vector<Step> whole_recording(const Trace& trace) {
  Window window = host_window(trace);
  if (window.empty()) window = device_window(trace);
  if (window.empty()) return {};
  Step step;
  step.name = "whole recording";
  step.start_ns = window.start_ns;
  step.end_ns = window.end_ns;
  return {step};
}

void find_steps(Trace& trace) {
  const StepMarks marks = find_step_marks(trace);
  if (!marks.profiler.empty()) {
    trace.steps = steps_of(trace, marks.profiler, true);
    trace.step_source = "ProfilerStep annotations";
  } else if (marks.optimizer.size() >= 2) {
    trace.steps = rounds_of(trace, marks.optimizer, host_window(trace));
    trace.step_source = "optimizer steps (Optimizer.step#… annotations)";
  } else if (!marks.serving.empty()) {
    trace.steps = steps_of(trace, marks.serving, false);
    trace.step_source = "serving marks (execute_… or step[…] annotations)";
  } else if (!marks.repeated.empty()) {
    trace.steps = steps_of(trace, marks.repeated, false);
    trace.step_source = "the repeated annotation \"" + trace.steps.front().name + "\"";
  } else {
    trace.steps = whole_recording(trace);
    trace.step_source = trace.only_graph()    ? "no steps: an execution trace has no times"
                        : trace.steps.empty() ? "no steps: the recording is empty"
                                              : "the whole recording as one step (it has no step marks)";
  }
}

bool launched_nothing(const Trace& trace, std::size_t step) {
  const StepId id = static_cast<StepId>(step);
  const Column<StepId>& column = trace.device.step;
  return trace.device.size() > 0 && std::find(column.begin(), column.end(), id) == column.end();
}

// A first or last step that reaches the edge of the recording, or is far shorter than the others, was cut. Of only two
// steps the longer may just hold a warm-up; then the shorter is cut only if it launched nothing.
void mark_partial(Trace& trace) {
  std::vector<Step>& steps = trace.steps;
  if (steps.size() < 2) return;
  const Window recording = recording_window(trace);
  std::vector<std::int64_t> lengths;
  for (const Step& step : steps) lengths.push_back(step.end_ns - step.start_ns);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto is_short = [&](std::size_t i) {
    return (steps[i].end_ns - steps[i].start_ns) < *middle / 4 && (steps.size() >= 3 || launched_nothing(trace, i));
  };
  Step& first = steps.front();
  Step& last = steps.back();
  first.partial = first.partial || is_short(0) || first.start_ns <= recording.start_ns;
  last.partial = last.partial || is_short(steps.size() - 1) || last.end_ns >= recording.end_ns;
}

void give_device_work_its_step(Trace& trace) {
  trace.device.step.resize(trace.device.size(), StepId::none);
  for (Step& step : trace.steps) step.device_end_ns = step.end_ns;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId launch = trace.device.launch[row], id = trace.device.slice[row];
    const StepId step = trace.step_at(trace.slices.start_ns[launch == SliceId::none ? id : launch]);
    trace.device.step[row] = step;
    if (step == StepId::none || !is_device_work(trace.kind(id))) continue;
    std::int64_t& end = trace.steps[static_cast<std::size_t>(step)].device_end_ns;
    end = std::max(end, trace.slices.end_ns(id));
  }
}

}  // namespace

Result<void> steps(Trace& trace, const DeriveOptions& options) {
  find_steps(trace);
  give_device_work_its_step(trace);
  mark_partial(trace);
  for (Step& step : trace.steps) {
    const auto& cut = options.cut_steps;
    step.partial = step.partial || std::find(cut.begin(), cut.end(), step.number) != cut.end();
  }
  return {};
}

}  // namespace stepscope::derive
