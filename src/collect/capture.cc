// The recording window as people write it and as the hooks read it.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "collect/collect.h"

namespace stepscope::collect {
namespace {

Error usage(std::string_view option, std::string_view text, std::string_view example) {
  return {ErrorKind::usage,
          std::string(option) + " '" + std::string(text) + "' is no window",
          {},
          {},
          "Write START:END, such as " + std::string(option) + " " + std::string(example)};
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < T{}) return std::nullopt;
  return value;
}

}  // namespace

Result<std::string> parse_steps(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto first = number<int>(text.substr(0, colon));
  if (colon == std::string_view::npos) {
    if (!first || *first == std::numeric_limits<int>::max()) return fail(usage("--steps", text, "10:15"));
    return std::to_string(*first) + ":" + std::to_string(*first + 1);
  }
  const auto end = number<int>(text.substr(colon + 1));
  if (!first || !end || *first >= *end) return fail(usage("--steps", text, "10:15"));
  return std::to_string(*first) + ":" + std::to_string(*end);
}

Result<std::string> parse_seconds(std::string_view text) {
  constexpr double kFirst = 3.0;      // imports and set-up are over in most jobs
  constexpr double kLongest = 86400;  // a recording lives in the memory of the job
  const std::size_t colon = text.find(':');
  const auto one = number<double>(text.substr(0, colon));
  const auto other = colon == std::string_view::npos ? std::nullopt : number<double>(text.substr(colon + 1));
  const double first = colon == std::string_view::npos ? kFirst : one.value_or(NAN);
  const double end = colon == std::string_view::npos ? kFirst + one.value_or(NAN) : other.value_or(NAN);
  if (!(first < end) || !(end <= kLongest)) return fail(usage("--seconds", text, "3:5"));
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g:%.6g", first, end);
  return std::string(buffer);
}

std::string to_text(const Capture& capture) {
  std::string out = capture.shapes ? "shapes=1" : "shapes=0";
  out += capture.memory ? " memory=1" : " memory=0";
  out += capture.stack ? " stack=1" : " stack=0";
  if (!capture.steps.empty()) out += " steps=" + capture.steps;
  if (!capture.seconds.empty()) out += " seconds=" + capture.seconds;
  return out;
}

}  // namespace stepscope::collect
