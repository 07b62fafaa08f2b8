#include "compat/compat.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/did_you_mean.h"
#include "compat/hta/table.h"

namespace stepscope::compat {
namespace {

struct Mode {
  std::string_view name;
  std::span<const Analysis> (*analyses)();
};

constexpr std::array kModes{Mode{"hta", hta::analyses}, Mode{"tensorboard", tensorboard::analyses}};

constexpr std::array kArguments{
    Argument{"num_kernels", "10", "gpu_kernel_breakdown: names kept before the rest becomes \"others\""},
    Argument{"num_annotations", "1000", "gpu_user_annotation_breakdown: the same for annotations"},
    Argument{"duration_ratio", "0.8", "both breakdowns: quantile of the running sum above which names are grouped"},
    Argument{"include_memory_kernels", "false", "gpu_kernel_breakdown: count copies and fills too"},
    Argument{"consecutive_kernel_delay", "30", "idle_time_breakdown: longest gap, in us, that is kernel_wait"},
    Argument{"max_queue_length", "1024", "time_spent_blocked_on_full_queue: length that counts as full"},
    Argument{"runtime_cutoff", "50", "cuda_kernel_launch_stats: longest call, in us, that is no outlier"},
    Argument{"launch_delay_cutoff", "100", "cuda_kernel_launch_stats: longest delay, in us, that is no outlier"},
    Argument{"operator_name", "aten::linear", "frequent_cuda_kernel_sequences: part of the operator's name"},
    Argument{"min_pattern_len", "3", "frequent_cuda_kernel_sequences: fewest kernels of a pattern"},
    Argument{"annotation", "ProfilerStep", "critical_path_analysis: part of the annotation's name"},
    Argument{"instance_id", "0", "critical_path_analysis: which of the annotations, from 0"},
    Argument{"device_type", "ALL", "trace_diff: ALL, CPU or GPU"},
    Argument{"use_short_name", "false", "trace_diff: names without <…> and (…)"},
    Argument{"num_candidates", "2", "potential_stragglers: ranks named"},
};

const Argument* find_argument(std::string_view name) {
  const auto* const found =
      std::find_if(kArguments.begin(), kArguments.end(), [&](const Argument& a) { return a.name == name; });
  return found == kArguments.end() ? nullptr : found;
}

bool parse(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_flag(std::string_view text) { return text == "true" || text == "false"; }

Result<void> check_argument(std::string_view name, std::string_view value) {
  const Argument* const known = find_argument(name);
  if (known == nullptr) {
    std::vector<std::string_view> names;
    for (const Argument& argument : kArguments) names.push_back(argument.name);
    return fail(unknown_name("argument", name, names));
  }
  double ignored = 0;
  const bool wrong =
      (is_flag(known->fallback) && !is_flag(value)) || (parse(known->fallback, ignored) && !parse(value, ignored));
  if (!wrong) return {};
  return fail({ErrorKind::usage, "argument " + std::string(name) + " cannot be '" + std::string(value) + "'", "",
               std::nullopt, "Give a value such as its default, " + std::string(known->fallback)});
}

}  // namespace

std::span<const Argument> arguments() { return kArguments; }

std::vector<std::string_view> mode_names() {
  std::vector<std::string_view> names;
  for (const Mode& mode : kModes) names.push_back(mode.name);
  return names;
}

Result<std::span<const Analysis>> analyses(std::string_view mode) {
  for (const Mode& known : kModes) {
    if (known.name == mode) return known.analyses();
  }
  return fail(unknown_name("compatible mode", mode, mode_names()));
}

Result<Input> prepare(const Run& run, const Options& options, ReadArguments read) {
  if (const auto known = analyses(options.mode); !known) return fail(known.error());
  for (const auto& [name, value] : options.arguments) {
    if (auto checked = check_argument(name, value); !checked) return fail(checked.error());
  }
  Input input(run, options, std::move(read));
  if (options.mode == "hta") {
    auto tables = hta::make_tables(run, options.include_last_step);
    if (!tables) return fail(tables.error());
    input.take(*std::move(tables));
  }
  return input;
}

std::string_view Input::argument(std::string_view name) const {
  const auto given = options_.arguments.find(name);
  return given != options_.arguments.end() ? std::string_view(given->second) : find_argument(name)->fallback;
}

double Input::number(std::string_view name) const {
  double value = 0;
  parse(argument(name), value);
  return value;
}

bool Input::flag(std::string_view name) const { return argument(name) == "true"; }

}  // namespace stepscope::compat
