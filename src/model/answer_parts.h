// Small parts from which analyses build their answers: scalars in both windows, shares, medians, long tables cut with
// a note. Nothing here knows a question.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/windows.h"

namespace stepscope {

inline Value to_value(std::optional<std::int64_t> number) { return number ? Value(*number) : Value(); }
inline Value to_value(std::optional<double> number) { return number ? Value(*number) : Value(); }
inline Value text(std::string_view words) { return words.empty() ? Value() : Value(std::string(words)); }
inline Value count(std::uint64_t number) { return static_cast<std::int64_t>(number); }
// Unknown unless `known`.
Value value_if(bool known, std::int64_t number);
// Of a column that may leave it out.
inline Value present(std::int64_t number) { return number == kAbsent ? Value() : Value(number); }
// Unknown where the trace does not number its devices.
inline Value device_number(std::int64_t device) { return device < 0 ? Value() : Value(device); }
inline Value device_number(const DeviceTime& device) { return device_number(device.device); }
// part / whole; unknown when there is no whole.
Value share(std::int64_t part, std::int64_t whole);

std::optional<std::int64_t> median(std::vector<std::int64_t> values);
// The value below which `part` (0..1) of the sorted values lie, between neighbors by linear interpolation.
template <class T>
std::optional<double> quantile(const std::vector<T>& sorted, double part) {
  if (sorted.empty()) return std::nullopt;
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const auto low = static_cast<double>(sorted[below]);
  return low + (at - static_cast<double>(below)) * (static_cast<double>(sorted[above]) - low);
}

void add_scalar(Answer& answer, std::string_view name, Value value, Unit unit, std::string_view meaning);

// What is measured of one device inside a window.
using Measure = std::function<std::int64_t(const DeviceTime& device, const Intervals& window)>;

// Adds NAME_span_ns and NAME_steps_ns. Several devices: the mean over them, and the meaning says so. What cannot be
// known (no device work, no whole step) is unknown with the reason as meaning.
void add_window_scalars(Answer& answer, const std::vector<RankTime>& ranks, std::string_view name,
                        std::string_view meaning, const Measure& measure);
// The same for SPAN_NAME and STEPS_NAME: the sum of `part` over the sum of `whole` of all devices.
void add_window_ratios(Answer& answer, const std::vector<RankTime>& ranks, std::string_view span_name,
                       std::string_view steps_name, std::string_view meaning, const Measure& part,
                       const Measure& whole);
// Adds span_ns and steps_ns, the lengths of the windows themselves.
void add_window_lengths(Answer& answer, const std::vector<RankTime>& ranks);

std::int64_t window_length(const DeviceTime& device, const Intervals& window);
std::int64_t busy_in(const DeviceTime& device, const Intervals& window);

// Cuts the table to its first `max_rows` rows (0: keeps all) and says in a note what was cut; `rest` finishes the
// sentence "… rows more, ", such as "all with less host time".
void limit_rows(Answer& answer, Table& table, std::size_t max_rows, std::string_view rest);

// Where the steps come from, as a note of an answer: "Steps: ProfilerStep annotations".
inline std::string steps_note(std::string_view step_source) {
  return (step_source.starts_with("no steps") ? "" : "Steps: ") + std::string(step_source);
}

// Notes and reasons that several answers share.
inline constexpr std::string_view kNoDeviceWork =
    "No device work was recorded: this is a CPU run, or the profiler did not trace the device. On a machine with a "
    "GPU record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].";
inline constexpr std::string_view kNoSteps =
    "No whole step was found. Mark steps with prof.step() of torch.profiler, or record under `stepscope run`.";
inline constexpr std::string_view kNoGain =
    "Not predicted: its fix is not one change; try some with stepscope what-if.";

bool has_device_work(const std::vector<RankTime>& ranks);
// An internal error when a trace of the run did not go through derive.
Result<void> require_derived(const Run& run);

}  // namespace stepscope
