// How people write what is to be recorded.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include "base/did_you_mean.h"
#include "base/duration.h"
#include "base/text_parts.h"
#include "collect/capture.h"

namespace stepscope::collect {
namespace {

constexpr std::int64_t kLastNumber = 2'147'483'647;  // of steps, ranks and repetitions
constexpr double kLongest = 86'400;                  // seconds; a recording lives in the memory of the job
constexpr double kLatest = 366 * 86'400.0;           // seconds
constexpr double kFirstSecond = 3;                   // imports and set-up are over in most jobs
constexpr double kMostBytes = 1e18;

Error wrong(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), {}, {}, std::move(hint)};
}

Error no_window(std::string_view text) {
  return wrong(quoted(text) + " is no window of steps", "Write START:END, such as 10:15; END is not recorded");
}

template <class T>
std::optional<T> number(std::string_view text, T most) {
  if (text.starts_with('-')) return std::nullopt;  // -0 too
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value <= most ? std::optional<T>(value) : std::nullopt;
}

std::optional<std::int64_t> count(std::string_view text) { return number<std::int64_t>(text, kLastNumber); }

std::optional<Window> window(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto first = count(text.substr(0, colon));
  if (!first) return std::nullopt;
  const auto end = colon == std::string_view::npos ? std::optional(*first + 1) : count(text.substr(colon + 1));
  if (!end || *end <= *first || *end > kLastNumber) return std::nullopt;
  return Window{*first, *end};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Ranks first to last of "4", "0-3".
std::optional<Window> rank_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = count(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : count(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Window{*first, *last};
}

// Bytes of "512MB", "2GiB"; not a number where the text is neither.
double bytes_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array kUnits{Unit{"kib", 1024.0}, Unit{"mib", 1048576.0}, Unit{"gib", 1073741824.0},
                                     Unit{"kb", 1e3},     Unit{"mb", 1e6},        Unit{"gb", 1e9},
                                     Unit{"tb", 1e12}};
  const std::string small = lower(text);
  for (const Unit& unit : kUnits) {
    if (!small.ends_with(unit.name)) continue;
    const auto amount = number<double>(trimmed(text.substr(0, text.size() - unit.name.size())), kMostBytes);
    return amount ? *amount * unit.bytes : NAN;
  }
  return NAN;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out;
  for (const char c : text.substr(0, kMost)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (text.size() > kMost) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "…";
  }
  return out;
}

std::string quoted(std::string_view text) { return "'" + shown(text) + "'"; }

Result<std::vector<Window>> parse_steps(std::string_view text) {
  std::vector<Window> windows;
  for (const std::string_view item : split(text, ",")) {
    const auto one = window(item);
    if (!one) return fail(no_window(item));
    windows.push_back(*one);
  }
  std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) { return a.first < b.first; });
  std::vector<Window> out;
  for (const Window& w : windows) {
    if (!out.empty() && w.first < out.back().end) {
      out.back().end = std::max(out.back().end, w.end);
    } else {
      out.push_back(w);
    }
  }
  if (out.size() > kMostWindows) {
    return fail(wrong("more than " + std::to_string(kMostWindows) + " windows of steps",
                      "Repeat one instead, such as --schedule wait=90,warmup=0,active=10,repeat=0"));
  }
  return out;
}

Result<std::int64_t> parse_step(std::string_view text) {
  if (const auto step = count(trimmed(text))) return *step;
  return fail(wrong(quoted(text) + " is no step", "Write a whole number, such as 10"));
}

Result<std::int64_t> parse_number(std::string_view text) {
  if (const auto number = count(trimmed(text)); number && *number > 0) return *number;
  return fail(wrong(quoted(text) + " is no whole number from 1 on", "Write one, such as 100"));
}

Result<Cycle> parse_schedule(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kNames{"wait",   "warmup",     "active",
                                                          "repeat", "skip_first", "skip_first_wait"};
  constexpr const char* kExample = "Write it as torch.profiler.schedule has it: wait=5,warmup=2,active=6,repeat=2";
  std::array<std::optional<std::int64_t>, 6> values;
  for (const std::string_view item : split(text, ",")) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return fail(wrong(quoted(item) + " is no part of a schedule", kExample));
    const std::string_view name = trimmed(item.substr(0, equals));
    const auto at = std::find(kNames.begin(), kNames.end(), name);
    if (at == kNames.end()) return fail(unknown_name("part of a schedule", shown(name), kNames));
    auto& value = values[static_cast<std::size_t>(at - kNames.begin())];
    if (value) return fail(wrong("the schedule says " + std::string(name) + " twice", kExample));
    value = count(trimmed(item.substr(equals + 1)));
    if (!value) return fail(wrong(quoted(item) + ": the number of steps is none", kExample));
  }
  const auto& [wait, warmup, active, repeat, skip_first, skip_first_wait] = values;
  if (!wait || !warmup || !active) return fail(wrong("a schedule needs wait, warmup and active", kExample));
  if (*active == 0) return fail(wrong("a schedule with active=0 records nothing", kExample));
  const std::int64_t first_wait = skip_first_wait.value_or(0) != 0 ? 0 : *wait;
  return Cycle{skip_first.value_or(0) + first_wait + *warmup, *active, *wait + *warmup + *active, repeat.value_or(0)};
}

Result<double> parse_duration(std::string_view text) {
  const auto seconds = read_duration(trimmed(text), BareNumber::seconds);
  if (seconds && *seconds <= kLatest) return *seconds;
  return fail(wrong(quoted(text) + " is no number of seconds", "Write a number, such as 15 or 0.5, or 500ms, 2m, 1h"));
}

Result<Stretch> stretch_after(std::optional<double> wait, double length) {
  const double start = wait.value_or(kFirstSecond);
  if (!(length > 0)) return fail(wrong("0 seconds record nothing", "Write a longer time, such as 15"));
  if (length > kLongest) {
    return fail(wrong("more than a day (86400 s) cannot be recorded: a recording lives in the memory of the job",
                      "Record parts of it, such as --schedule wait=990,warmup=0,active=10,repeat=0"));
  }
  return Stretch{start, start + length};
}

Result<Stretch> parse_seconds(std::string_view text) {
  const std::string_view all = trimmed(text);
  const std::size_t colon = all.find(':');
  const bool one = colon == std::string_view::npos;
  const auto start = one ? std::optional(kFirstSecond) : number<double>(all.substr(0, colon), kLatest);
  const auto other = number<double>(one ? all : all.substr(colon + 1), kLatest);
  const double length = one ? other.value_or(NAN) : other.value_or(NAN) - start.value_or(NAN);
  if (!(length > 0)) {
    return fail(wrong(quoted(text) + " is no window of seconds", "Write START:END, such as 3:5"));
  }
  return stretch_after(start, length);
}

Result<std::string> parse_ranks(std::string_view text) {
  constexpr const char* kExample = "Write all, or numbers, ranges and last with commas between, such as 0,2-4,last";
  if (trimmed(text) == "all") return std::string("all");
  std::set<std::int64_t> ranks;
  bool last = false;
  for (const std::string_view item : split(text, ",")) {
    if (item == "last") {
      last = true;
      continue;
    }
    const auto range = rank_range(item);
    if (!range) return fail(wrong(quoted(item) + " is no rank", kExample));
    const auto end = std::min(range->end, range->first + static_cast<std::int64_t>(kMostRanks));
    for (std::int64_t rank = range->first; rank <= end; ++rank) ranks.insert(rank);
    if (ranks.size() > kMostRanks) {
      return fail(wrong("more than " + std::to_string(kMostRanks) + " ranks are named", "Write all, or name fewer"));
    }
  }
  std::string out;
  for (const std::int64_t rank : ranks) out += (out.empty() ? "" : ",") + std::to_string(rank);
  if (last) out += out.empty() ? "last" : ",last";
  return out;
}

Result<Parts> parse_with(std::string_view text) {
  struct Part {
    std::string_view name;
    bool Parts::*is_in;
  };
  static constexpr std::array kParts{
      Part{"shapes", &Parts::shapes}, Part{"memory", &Parts::memory}, Part{"modules", &Parts::modules},
      Part{"stack", &Parts::stack},   Part{"flops", &Parts::flops},   Part{"execution-trace", &Parts::execution_trace}};
  Parts out{false, false, false, false, false, false};
  if (text == "none") return out;
  if (text.empty()) return fail({ErrorKind::usage, "the list is empty", {}, {}, "Write none to leave out all parts"});
  for (const std::string_view item : split(text, ",")) {
    const auto at = std::find_if(kParts.begin(), kParts.end(), [&](const Part& p) { return p.name == item; });
    if (at == kParts.end()) {
      std::array<std::string_view, kParts.size()> names;
      std::transform(kParts.begin(), kParts.end(), names.begin(), [](const Part& p) { return p.name; });
      return fail(unknown_name("part of a recording", shown(item), names));
    }
    out.*(at->is_in) = true;
  }
  return out;
}

Result<Budget> parse_budget(std::string_view text) {
  constexpr const char* kExample = "Write a share of the job's time, a size, or both, such as 1%,512MB";
  Budget out;
  for (const std::string_view item : split(text, ",")) {
    const bool is_share = item.ends_with('%');
    const double value =
        is_share ? number<double>(trimmed(item.substr(0, item.size() - 1)), 100.0).value_or(NAN) : bytes_of(item);
    if (!(value > 0) || value > kMostBytes || (!is_share && value < 1)) {
      return fail(wrong(quoted(item) + " is no budget", kExample));
    }
    if (is_share ? out.share.has_value() : out.bytes.has_value()) {
      return fail(wrong(std::string("the budget names two ") + (is_share ? "shares" : "sizes"), kExample));
    }
    if (is_share) {
      out.share = value / 100;
    } else {
      out.bytes = static_cast<std::int64_t>(value);
    }
  }
  return out;
}

Result<bool> parse_switch(std::string_view text) {
  const std::string word = lower(trimmed(text));
  for (const char* yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (word == no) return false;
  return fail(wrong(quoted(text) + " is neither true nor false", "Write true or false"));
}

}  // namespace stepscope::collect
