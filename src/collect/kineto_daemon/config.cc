// Kineto reads line by line: '#' starts a comment, a second '=' spoils the line, and it puts "_PID" before the first
// ".json" of the path. A line that it cannot read stops the reading, and it records with what came before.
#include "collect/kineto_daemon/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stepscope::collect::kineto {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // Kineto's own numbers are int32
constexpr std::size_t kLongestPrefix = 3000;

Error usage(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), "", {}, std::move(hint)};
}

std::optional<Error> bad_prefix(const std::string& prefix) {
  const bool syntax = std::any_of(prefix.begin(), prefix.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '=' || c == '#' || c == '"' || c == '\\';
  });
  if (prefix.empty() || prefix.front() != '/' || prefix.back() == '/' || prefix.size() > kLongestPrefix) {
    return usage("'" + prefix + "' is no place for traces of Kineto", "Give an absolute path and the start of a name");
  }
  if (syntax || prefix.back() == ' ' || prefix.find("..") != std::string::npos ||
      prefix.find(".json") != std::string::npos) {
    return usage("Kineto cannot write to '" + prefix + "'",
                 "Use a path without '=', '#', quotes, control characters, '..' and '.json'");
  }
  return std::nullopt;
}

std::optional<Error> out_of_range(std::int64_t value, std::int64_t least, std::string_view what) {
  if (value >= least && value <= kMost) return std::nullopt;
  return usage(fmt::format("{} {} is out of range", what, value), fmt::format("Use {} to {}", least, kMost));
}

std::optional<Error> bad_numbers(const OnDemand& request) {
  if (request.duration_ms.has_value() == request.iterations.has_value()) {
    return usage("a trace ends after a time or after a number of iterations", "Give one of the two");
  }
  if (request.start_unix_ms < 0) return usage("the start lies before 1970", "Give milliseconds since 1970, or 0");
  for (const auto& fault :
       {out_of_range(request.duration_ms.value_or(1), 1, "duration (ms)"),
        out_of_range(request.iterations.value_or(1), 1, "iterations"), out_of_range(request.warmup_s, 0, "warmup (s)"),
        out_of_range(request.start_iteration.value_or(0), 0, "first iteration"),
        out_of_range(request.start_roundup, 1, "roundup"),
        out_of_range(request.warmup_iterations, 0, "warmup iterations")}) {
    if (fault) return fault;
  }
  return std::nullopt;
}

// A duration of 0 makes Kineto refuse the request where no iterations are counted; else it would silently record 500 ms
// at a moment of its own.
std::string window(const OnDemand& request) {
  if (request.duration_ms) {
    return fmt::format("PROFILE_START_TIME={}\nACTIVITIES_DURATION_MSECS={}\nACTIVITIES_WARMUP_PERIOD_SECS={}\n",
                       request.start_unix_ms, *request.duration_ms, request.warmup_s);
  }
  return fmt::format(
      "PROFILE_START_ITERATION={}\nPROFILE_START_ITERATION_ROUNDUP={}\nACTIVITIES_ITERATIONS={}\n"
      "ACTIVITIES_WARMUP_ITERATIONS={}\nACTIVITIES_DURATION_MSECS=0\n",
      request.start_iteration.value_or(0), request.start_roundup, *request.iterations, request.warmup_iterations);
}

}  // namespace

std::string trace_path(const std::string& file_prefix, int pid) { return fmt::format("{}_{}.json", file_prefix, pid); }

Result<std::string> to_config(const OnDemand& request) {
  if (auto fault = bad_prefix(request.file_prefix)) return fail(std::move(*fault));
  if (auto fault = bad_numbers(request)) return fail(std::move(*fault));
  return fmt::format(
      "ACTIVITIES_LOG_FILE={}.json\n{}PROFILE_REPORT_INPUT_SHAPES={}\nPROFILE_PROFILE_MEMORY={}\n"
      "PROFILE_WITH_STACK={}\nPROFILE_WITH_FLOPS={}\nPROFILE_WITH_MODULES={}\n",
      request.file_prefix, window(request), request.shapes, request.memory, request.stack, request.flops,
      request.modules);
}

}  // namespace stepscope::collect::kineto
