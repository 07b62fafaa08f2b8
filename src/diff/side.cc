#include "diff/side.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/key_index.h"
#include "model/collective_work.h"
#include "model/normal_name.h"
#include "model/op_calls.h"
#include "model/windows.h"

namespace stepscope::diff {
namespace {

constexpr std::uint32_t kNoSample = 0xffffffff;

// Steps of one kind have one name but for its numbers.
std::string kind_of(std::string_view name) {
  std::string kind = normal_name(name);
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

class Extractor {
 public:
  Extractor(const Run& run, StringPool& names, std::string kind) : run_(run), names_(names), kind_(std::move(kind)) {}

  Side extract() {
    choose_samples();
    side_.entities.push_back({.level = Level::step, .name = names_.intern("step"), .time = side_.walls});
    const auto traces = timelines(run_);
    for (std::size_t t = 0; t < traces.size(); t++) take(traces[t], samples_[t]);
    for (Entity& entity : side_.entities) {
      for (Values* values : {&entity.count, &entity.time, &entity.self, &entity.device}) values->resize(size_);
    }
    for (PathEntity& entity : side_.path) entity.time.resize(size_);
    return std::move(side_);
  }

 private:
  using Samples = std::vector<std::uint32_t>;  // per step of a trace: its sample, or none

  void choose_samples() {
    for (const Trace& trace : timelines(run_)) {
      Samples& samples = samples_.emplace_back(trace.steps.size(), kNoSample);
      const std::vector<Interval> walls = step_walls(trace);
      for (std::size_t i = 0; i < trace.steps.size(); i++) {
        if (trace.steps[i].partial || kind_of(trace.steps[i].name) != kind_ || walls[i].end <= walls[i].start) {
          side_.left_out++;
          continue;
        }
        samples[i] = static_cast<std::uint32_t>(side_.walls.size());
        side_.walls.push_back(static_cast<double>(walls[i].end - walls[i].start));
      }
    }
    size_ = side_.walls.size();
  }

  void take(const Trace& trace, const Samples& samples) {
    normal_.assign(trace.strings.size(), StringId::none);
    const RankTime time = rank_time(trace);
    side_.has_device_work = side_.has_device_work || !time.devices.empty();
    take_phases(trace, samples, time);
    take_ops(trace, samples);
    take_modules(trace, samples);
    take_device(trace, samples);
    take_path(trace, samples);
  }

  StringId normal(const Trace& trace, StringId raw) {
    if (raw == StringId::none) return StringId::none;
    StringId& known = normal_[static_cast<std::size_t>(raw)];
    if (known == StringId::none) known = names_.intern(normal_name(trace.strings[raw]));
    return known;
  }

  Entity& entity(Level level, StringId name, StringId detail, StringId context) {
    const auto key = std::tuple(level, name, detail, context);
    const auto [found, added] = index_.try_emplace(key, side_.entities.size());
    if (added) side_.entities.push_back({.level = level, .name = name, .detail = detail, .context = context});
    return side_.entities[found->second];
  }
  void add(Values& values, std::uint32_t sample, std::int64_t value) const {
    if (values.empty()) values.resize(size_);
    values[sample] += static_cast<double>(value);
  }

  void take_phases(const Trace& trace, const Samples& samples, const RankTime& time) {
    for (const StepTimes& step : step_times(trace, time)) {
      if (samples[step.step] == kNoSample) continue;
      for (std::size_t phase = 0; phase < kPhases; phase++) {
        const StringId name = names_.intern(to_string(static_cast<Phase>(phase)));
        for (const auto& [where, part] :
             {std::pair("host", step.host_phases[phase]), std::pair("device", step.device_phases[phase])}) {
          if (part > 0)
            add(entity(Level::phase, name, names_.intern(where), StringId::none).time, samples[step.step], part);
        }
      }
    }
  }

  // The sample at an instant of the host; `at` is a cursor over the steps.
  std::uint32_t sample_at(const Trace& trace, const Samples& samples, std::int64_t time_ns) const {
    const StepId step = trace.step_at(time_ns);
    return step == StepId::none ? kNoSample : samples[static_cast<std::size_t>(step)];
  }

  void take_ops(const Trace& trace, const Samples& samples) {
    const OpCalls calls = op_calls(trace);
    for (std::uint32_t call = 0; call < calls.size(); call++) {
      const SliceId slice = calls.slice[call];
      const std::uint32_t sample = sample_at(trace, samples, trace.slices.start_ns[slice]);
      if (sample == kNoSample) continue;
      const std::uint32_t parent = calls.parent[call], row = calls.row[call];
      const StringId raw = trace.slices.name[slice];
      const StringId around = parent == OpCalls::none ? StringId::none : trace.slices.name[calls.slice[parent]];
      const StringId dims = row == OpCalls::none ? StringId::none : trace.ops.input_dims[row];
      Entity& op = entity(Level::op, normal(trace, raw), normal(trace, dims), normal(trace, around));
      add(op.count, sample, 1);
      if (around != raw) add(op.time, sample, trace.slices.dur_ns[slice]);
      add(op.self, sample, calls.host_self_ns[call]);
      add(op.device, sample, calls.device_self_ns[call]);
    }
  }

  void take_modules(const Trace& trace, const Samples& samples) {
    for (const ModuleCall& module : trace.modules) {
      const std::uint32_t sample = sample_at(trace, samples, trace.slices.start_ns[module.slice]);
      if (sample == kNoSample) continue;
      Entity& found = entity(Level::module, normal(trace, module.name), StringId::none, StringId::none);
      add(found.count, sample, 1);
      add(found.time, sample, trace.slices.dur_ns[module.slice]);
    }
  }

  // The op around a launch, by name; marks of steps are no context: they say only where, not what.
  StringId context_of(const Trace& trace, std::uint32_t row) {
    const SliceId op = trace.device.op[row];
    if (op == SliceId::none || trace.kind(op) != SliceKind::cpu_op) return StringId::none;
    return normal(trace, trace.slices.name[op]);
  }

  StringId size_of(const Trace& trace, std::uint32_t collective) {
    const auto bytes = collective_bytes(trace, collective);
    const std::int64_t ranks = trace.collectives.group_size[collective];
    std::string text = bytes ? std::to_string(*bytes) + " bytes" : "size unknown";
    if (ranks > 0) text += ", " + std::to_string(ranks) + " ranks";
    return names_.intern(text);
  }

  void take_device(const Trace& trace, const Samples& samples) {
    for (const std::uint32_t row : work_by_start(trace)) {
      const StepId step = trace.device.step[row];
      const std::uint32_t sample = step == StepId::none ? kNoSample : samples[static_cast<std::size_t>(step)];
      if (sample == kNoSample) continue;
      const SliceId slice = trace.device.slice[row];
      Entity& kernel =
          entity(Level::kernel, normal(trace, trace.slices.name[slice]), StringId::none, context_of(trace, row));
      add(kernel.count, sample, 1);
      add(kernel.time, sample, trace.slices.dur_ns[slice]);
      if (trace.device.device_class[row] != static_cast<std::uint8_t>(DeviceClass::communication)) continue;
      const std::uint32_t collective = collective_of(trace, row);
      const CollectiveKind kind = collective_kind(
          collective == kNoCollective ? trace.name(slice) : trace.strings[trace.collectives.kind[collective]]);
      Entity& found = entity(Level::collective, names_.intern(to_string(kind)),
                             collective == kNoCollective ? StringId::none : size_of(trace, collective), StringId::none);
      add(found.count, sample, 1);
      add(found.time, sample, trace.slices.dur_ns[slice]);
    }
  }

  void take_path(const Trace& trace, const Samples& samples) {
    PathFinder(trace).each_step([&](std::size_t step, const CriticalPath& path) {
      if (samples[step] == kNoSample) return;
      for (const PathSegment& segment : path.segments) {
        const StringId name = name_of(trace, segment.slice);
        const std::size_t at =
            path_index_[(static_cast<std::uint64_t>(segment.what) << 32) | static_cast<std::uint32_t>(name)];
        if (at == side_.path.size()) side_.path.push_back({.what = segment.what, .name = name, .time = {}});
        add(side_.path[at].time, samples[step], segment.when.end - segment.when.start);
      }
    });
  }

  // What the program does in a step beside all that has a name is under the step's own.
  StringId name_of(const Trace& trace, SliceId slice) {
    if (slice == SliceId::none) return StringId::none;
    const StringId name = normal(trace, trace.slices.name[slice]);
    if (trace.kind(slice) != SliceKind::user_annotation) return name;
    const auto [known, is_new] = is_step_.try_emplace(name, false);
    if (is_new) known->second = kind_of(names_[name]) == kind_;
    return known->second ? names_.intern("(code between operators)") : name;
  }

  const Run& run_;
  StringPool& names_;
  std::string kind_;
  Side side_;
  std::size_t size_ = 0;
  std::vector<Samples> samples_;  // per trace
  std::vector<StringId> normal_;  // per name of the trace in hand
  std::map<std::tuple<Level, StringId, StringId, StringId>, std::size_t> index_;
  std::unordered_map<StringId, bool> is_step_;  // names of annotations
  KeyIndex path_index_;
};

}  // namespace

std::string_view to_string(Level level) {
  static constexpr std::array<std::string_view, kLevels> names{"step",     "phase",  "module",
                                                               "operator", "kernel", "collective"};
  return names[static_cast<std::size_t>(level)];
}

std::map<std::string, std::int64_t> step_kinds(const Run& run) {
  std::map<std::string, std::int64_t> kinds;
  for (const Trace& trace : timelines(run)) {
    for (const Step& step : trace.steps) {
      if (!step.partial) kinds[kind_of(step.name)] += step.end_ns - step.start_ns;
    }
  }
  return kinds;
}

Side side_of(const Run& run, StringPool& names, const std::string& kind) {
  return Extractor(run, names, kind).extract();
}

}  // namespace stepscope::diff
