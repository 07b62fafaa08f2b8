// Phases: what the program was doing at each slice: loading data, forward, backward, optimizer …
//
// On a host thread a slice's own name decides (phase_names), else the slice around it. What an outer range claims it
// keeps: recomputed forward code inside backward is backward, a model run inside evaluation is evaluation; only
// communication shows through everywhere, and both passes where an optimizer calls them: one that is given a closure
// (as Lightning gives each) has them inside of its step, up to the end of the backward pass. Where forward is not
// marked, an op is forward when an autograd node was made in it (it has a backward op), or when it runs on the step's
// thread before the step's first backward op. Device work takes the phase of the call that launched it, else of the op
// it belongs to.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "derive/passes.h"
#include "derive/phase_names.h"
#include "model/closures.h"
#include "model/lookup.h"

namespace stepscope::derive {
namespace {

constexpr std::uint8_t kUnasked = 0xff, kSilent = 0xfe;

// phase_of_name, asked once per distinct name and kind.
class PhaseNames {
 public:
  explicit PhaseNames(const Trace& trace) : trace_(trace) {}

  // A Phase as a number, or kSilent.
  std::uint8_t operator()(SliceId id, SliceKind kind) {
    const StringId name = trace_.slices.name[id];
    if (name == StringId::none || kind > SliceKind::python_function) return kSilent;
    std::vector<std::uint8_t>& verdicts = verdicts_[static_cast<std::size_t>(kind)];
    if (verdicts.empty()) verdicts.resize(trace_.strings.size(), kUnasked);
    std::uint8_t& verdict = verdicts[static_cast<std::size_t>(name)];
    if (verdict == kUnasked) {
      const std::optional<Phase> phase = phase_of_name(trace_.strings[name], kind);
      verdict = phase ? static_cast<std::uint8_t>(*phase) : kSilent;
    }
    return verdict;
  }

 private:
  static_assert(static_cast<int>(SliceKind::python_function) == 2);
  const Trace& trace_;
  std::vector<std::uint8_t> verdicts_[3];
};

Phase inside(Phase outer, Phase own) {
  if (own == Phase::communication) return own;
  if (outer == Phase::optimizer && (own == Phase::forward || own == Phase::backward)) return own;
  return outer == Phase::other || outer == Phase::forward ? own : outer;
}

Phase phase_at(const Slices& slices, SliceId id) {
  return id == SliceId::none ? Phase::other : static_cast<Phase>(slices.phase[id]);
}

// Ops whose autograd link says what they are, whatever their name; read again by mark_by_name.
void mark_by_links(Trace& trace) {
  for (const Backward& pair : trace.backward) {
    trace.slices.phase[pair.forward] = static_cast<std::uint8_t>(Phase::forward);
    trace.slices.phase[pair.backward] = static_cast<std::uint8_t>(Phase::backward);
  }
}

// Asked in the order of by_track.
class Closures {
 public:
  Closures(const Trace& trace, PhaseNames& names)
      : slices_(trace.slices), closures_(closures(trace, [&](SliceId id) {
          const std::uint8_t named = names(id, trace.kind(id));
          return named == kSilent ? phase_at(trace.slices, id) : static_cast<Phase>(named);
        })) {}

  // The phase around a slice: its closure is no part of the optimizer, in whose range it is.
  Phase around(SliceId id) {
    const SliceId parent = slices_.parent[id];
    const Phase outer = phase_at(slices_, parent);
    if (outer != Phase::optimizer || closures_.empty()) return outer;
    const auto is_before = [&](const Closure& closure) {
      const SliceId one = closure.optimizer;
      return slices_.track[one] < slices_.track[id] ||
             (slices_.track[one] == slices_.track[id] && slices_.end_ns(one) <= slices_.start_ns[id]);
    };
    while (at_ < closures_.size() && is_before(closures_[at_])) at_++;
    if (at_ == closures_.size()) return outer;
    const Closure& closure = closures_[at_];
    const bool holds = slices_.track[closure.optimizer] == slices_.track[id] &&
                       slices_.start_ns[closure.optimizer] <= slices_.start_ns[id] && id != closure.optimizer &&
                       slices_.end_ns(id) <= closure.end_ns && slices_.end_ns(parent) > closure.end_ns;
    return holds ? Phase::other : outer;
  }

 private:
  const Slices& slices_;
  std::vector<Closure> closures_;
  std::size_t at_ = 0;
};

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// By name and from the outside in. Returns per step when its backward pass begins; kNever: it has none.
std::vector<std::int64_t> mark_by_name(Trace& trace) {
  std::vector<std::int64_t> backward_start(trace.steps.size(), kNever);
  PhaseNames names(trace);
  Closures closures(trace, names);
  Slices& slices = trace.slices;
  for (const SliceId id : trace.by_track.span()) {
    const Phase outer = closures.around(id);
    const std::uint8_t named = names(id, trace.kind(id));
    const Phase own = named == kSilent ? static_cast<Phase>(slices.phase[id]) : static_cast<Phase>(named);
    const Phase phase = own == Phase::other ? outer : inside(outer, own);
    slices.phase[id] = static_cast<std::uint8_t>(phase);
    if (phase != Phase::backward || outer == Phase::backward) continue;
    if (const StepId step = trace.step_at(slices.start_ns[id]); step != StepId::none) {
      std::int64_t& first = backward_start[static_cast<std::size_t>(step)];
      first = std::min(first, slices.start_ns[id]);
    }
  }
  return backward_start;
}

void fill_forward(Trace& trace, const std::vector<std::int64_t>& backward_start) {
  Slices& slices = trace.slices;
  std::vector<bool> step_track(trace.tracks.size(), false);
  for (const Step& step : trace.steps)
    if (step.track != TrackId::none) step_track[static_cast<std::size_t>(step.track)] = true;
  for (std::size_t track = 0; track < trace.tracks.size(); track++) {
    if (!step_track[track]) continue;
    for (std::uint32_t at = trace.track_begin[track]; at < trace.track_begin[track + 1]; at++) {
      const SliceId id = trace.by_track[at];
      if (phase_at(slices, id) != Phase::other) continue;
      bool forward = phase_at(slices, slices.parent[id]) == Phase::forward;
      if (!forward && trace.kind(id) == SliceKind::cpu_op) {
        const StepId step = trace.step_at(slices.start_ns[id]);
        forward = step != StepId::none && backward_start[static_cast<std::size_t>(step)] != kNever &&
                  slices.start_ns[id] < backward_start[static_cast<std::size_t>(step)];
      }
      if (forward) slices.phase[id] = static_cast<std::uint8_t>(Phase::forward);
    }
  }
}

void mark_device_work(Trace& trace) {
  DeviceRows& device = trace.device;
  device.phase.resize(device.size(), 0);
  for (std::size_t row = 0; row < device.size(); row++) {
    Phase phase = phase_at(trace.slices, device.launch[row]);
    if (phase == Phase::other) phase = phase_at(trace.slices, device.op[row]);
    const bool collective = phase == Phase::other && device.op[row] == SliceId::none &&
                            row_of(trace.collectives.slice, device.slice[row]) < trace.collectives.size();
    device.phase[row] = static_cast<std::uint8_t>(collective ? Phase::communication : phase);
  }
}

}  // namespace

Result<void> phases(Trace& trace, const DeriveOptions&) {
  trace.slices.phase.resize(trace.slices.size(), 0);
  mark_by_links(trace);
  fill_forward(trace, mark_by_name(trace));
  mark_device_work(trace);
  return {};
}

}  // namespace stepscope::derive
