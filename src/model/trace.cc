#include "model/trace.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepscope {
namespace {

struct KindOfCategory {
  std::string_view category;
  SliceKind kind;
};

// Category spellings of Kineto (old and new), torch's CPU profiler, ROCm, XPU and MTIA builds.
constexpr std::array kKinds{
    KindOfCategory{"cpu_op", SliceKind::cpu_op},
    KindOfCategory{"Operator", SliceKind::cpu_op},
    KindOfCategory{"operator", SliceKind::cpu_op},
    KindOfCategory{"user_annotation", SliceKind::user_annotation},
    KindOfCategory{"python_function", SliceKind::python_function},
    KindOfCategory{"cuda_runtime", SliceKind::runtime},
    KindOfCategory{"cuda_driver", SliceKind::runtime},
    KindOfCategory{"hip_runtime", SliceKind::runtime},
    KindOfCategory{"hip_driver", SliceKind::runtime},
    KindOfCategory{"mtia_runtime", SliceKind::runtime},
    KindOfCategory{"xpu_runtime", SliceKind::runtime},
    KindOfCategory{"xpu_driver", SliceKind::runtime},
    KindOfCategory{"privateuse1_runtime", SliceKind::runtime},
    KindOfCategory{"privateuse1_driver", SliceKind::runtime},
    KindOfCategory{"Runtime", SliceKind::runtime},
    KindOfCategory{"kernel", SliceKind::kernel},
    KindOfCategory{"Kernel", SliceKind::kernel},
    KindOfCategory{"concurrent_kernel", SliceKind::kernel},
    KindOfCategory{"mtia_ccp_events", SliceKind::kernel},
    KindOfCategory{"gpu_memcpy", SliceKind::memcpy},
    KindOfCategory{"Memcpy", SliceKind::memcpy},
    KindOfCategory{"gpu_memset", SliceKind::memset},
    KindOfCategory{"Memset", SliceKind::memset},
    KindOfCategory{"cuda_sync", SliceKind::sync},
    KindOfCategory{"cuda_event", SliceKind::sync},
    KindOfCategory{"gpu_user_annotation", SliceKind::gpu_user_annotation},
    KindOfCategory{"cuda_profiler_range", SliceKind::profiler_range},
    KindOfCategory{"Trace", SliceKind::trace_window},
    KindOfCategory{"overhead", SliceKind::overhead},
};

}  // namespace

std::string_view to_string(NodeKind kind) {
  static constexpr std::array<std::string_view, kNodeKinds> names{
      "host", "process", "thread", "metadata", "compute", "memory", "send", "receive", "collective"};
  return names[static_cast<std::size_t>(kind)];
}

SliceKind slice_kind(std::string_view category) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.category == category; });
  return found == kKinds.end() ? SliceKind::other : found->kind;
}

std::string_view to_string(SliceKind kind) {
  static constexpr std::array<std::string_view, 13> names{
      "cpu_op", "user_annotation",     "python_function", "runtime",      "kernel",   "memcpy", "memset",
      "sync",   "gpu_user_annotation", "profiler_range",  "trace_window", "overhead", "other"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(RankSource source) {
  static constexpr std::array<std::string_view, 4> names{"distributedInfo", "file name", "order given",
                                                         "NCCL communicator"};
  return names[static_cast<std::size_t>(source)];
}

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> names{"other",         "dataloader", "forward",
                                                               "backward",      "optimizer",  "zero_grad",
                                                               "communication", "evaluation", "checkpoint"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view to_string(DeviceClass device_class) {
  static constexpr std::array<std::string_view, kDeviceClasses> names{"unclassified", "compute", "communication",
                                                                      "memory copy", "memory set"};
  return names[static_cast<std::size_t>(device_class)];
}

std::string_view to_string(MatchedBy by) {
  static constexpr std::array<std::string_view, 4> names{"sequence number", "order and time", "order", "alone"};
  return names[static_cast<std::size_t>(by)];
}

std::string_view to_string(ClockSource source) {
  static constexpr std::array<std::string_view, 5> names{"reference", "collectives", "same host", "wall clock",
                                                         "first event"};
  return names[static_cast<std::size_t>(source)];
}

std::int64_t run_time_ns(const Trace& trace, std::int64_t t) {
  const TraceClock& clock = trace.clock;
  const std::int64_t time = t + clock.offset_ns;
  return clock.drift == 0 ? time : time + std::llround(clock.drift * static_cast<double>(t - clock.pivot_ns));
}

StepId Trace::step_at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                      [](std::int64_t time, const Step& step) { return time < step.start_ns; });
  if (after == steps.begin()) return StepId::none;
  const auto found = std::prev(after);
  return time_ns < found->end_ns ? static_cast<StepId>(found - steps.begin()) : StepId::none;
}

}  // namespace stepscope
