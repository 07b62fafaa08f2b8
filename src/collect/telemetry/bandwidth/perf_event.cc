#include "collect/telemetry/bandwidth/perf_event.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "base/text_parts.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry::bandwidth {
namespace {

constexpr int kMostCpus = 1 << 16;

// The part up to the next `mark`, which is taken off.
std::string_view next_part(std::string_view& text, char mark) {
  const std::size_t end = text.find(mark);
  const std::string_view part = text.substr(0, end);
  text = end == text.npos ? std::string_view() : text.substr(end + 1);
  return part;
}

std::optional<std::uint64_t> any_number(std::string_view text) {
  const int base = text.substr(0, 2) == "0x" ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "3", "0-7"
std::optional<std::pair<int, int>> range_in(std::string_view text) {
  if (!text.empty() && text.back() == '-') return std::nullopt;
  const std::string_view first = next_part(text, '-');
  const auto from = any_number(first), to = text.empty() ? from : any_number(text);
  if (!from || !to || *from > *to || *to >= kMostCpus) return std::nullopt;
  return std::pair(static_cast<int>(*from), static_cast<int>(*to));
}

// `format` is "config:0-7,32-35" or "config1:0-63": the low bits of the value go to the first range.
bool put(EventCode& code, std::string_view format, std::uint64_t value) {
  const std::string_view word = next_part(format, ':');
  const int which = word == "config" ? 0 : word == "config1" ? 1 : word == "config2" ? 2 : -1;
  if (which < 0 || format.empty()) return false;
  while (!format.empty()) {
    const auto range = range_in(trimmed(next_part(format, ',')));
    if (!range || range->second > 63) return false;
    const int bits = range->second - range->first + 1;
    const std::uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
    code.config[which] |= (value & mask) << range->first;
    value = bits == 64 ? 0 : value >> bits;
  }
  return value == 0;  // else it does not fit
}

}  // namespace

std::optional<EventCode> event_code(const std::string& device, std::string_view words) {
  EventCode code;
  if (trimmed(words).empty()) return std::nullopt;
  for (words = trimmed(words); !words.empty();) {
    std::string_view value = next_part(words, ',');
    if (!value.empty() && value.back() == '=') return std::nullopt;
    const std::string name(next_part(value, '='));
    const auto number = value.empty() ? std::optional<std::uint64_t>(1) : any_number(value);
    const bool is_plain = name == "config" || name == "config1" || name == "config2";
    const std::string format = is_plain ? name + ":0-63" : first_line_of(device + "/format/" + name);
    if (!number || name.empty() || name.find('/') != name.npos || !put(code, format, *number)) return std::nullopt;
  }
  return code;
}

std::optional<double> bytes_per_count(const std::string& device, const std::string& name) {
  const std::string text = first_line_of(device + "/events/" + name + ".scale");
  const std::string unit = first_line_of(device + "/events/" + name + ".unit");
  double scale = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (read.ec != std::errc() || !std::isfinite(scale) || scale <= 0) return std::nullopt;
  if (unit == "MiB") return scale * 1024 * 1024;
  if (unit == "KiB") return scale * 1024;
  if (unit == "Bytes" || unit == "bytes" || unit == "B") return scale;
  return std::nullopt;
}

std::vector<int> cpus_in(std::string_view list) {
  std::vector<int> cpus;
  for (list = trimmed(list); !list.empty();) {
    const auto range = range_in(next_part(list, ','));
    if (!range) return {};
    for (int cpu = range->first; cpu <= range->second; cpu++) cpus.push_back(cpu);
  }
  return cpus;
}

EventCounter::EventCounter(const Roots& roots, unsigned type, const EventCode& code, int cpu, double bytes_per_count)
    : cpu_(cpu), bytes_per_count_(bytes_per_count) {
  perf_event_attr wanted{};
  wanted.type = type;
  wanted.size = sizeof wanted;
  wanted.config = code.config[0];
  wanted.config1 = code.config[1];
  wanted.config2 = code.config[2];
  wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  file_ = roots.perf_event ? roots.perf_event(wanted, cpu)
                           : static_cast<int>(syscall(SYS_perf_event_open, &wanted, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

EventCounter::EventCounter(EventCounter&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      cpu_(other.cpu_),
      bytes_per_count_(other.bytes_per_count_),
      bytes_(other.bytes_),
      last_(other.last_) {}

EventCounter::~EventCounter() {
  if (file_ >= 0) close(file_);
}

std::optional<double> EventCounter::read() {
  Reading now{};
  if (file_ < 0 || ::read(file_, &now, sizeof now) != static_cast<ssize_t>(sizeof now)) return std::nullopt;
  // Without time on the hardware nothing was counted, and nothing can be said of the time before.
  if (now.count < last_.count || now.enabled_ns < last_.enabled_ns || now.running_ns < last_.running_ns) {
    last_ = now;
    return bytes_;
  }
  const auto running = static_cast<double>(now.running_ns - last_.running_ns);
  if (running == 0) return std::nullopt;
  const double waited = static_cast<double>(now.enabled_ns - last_.enabled_ns) / running;
  bytes_ += static_cast<double>(now.count - last_.count) * bytes_per_count_ * waited;
  last_ = now;
  return bytes_;
}

}  // namespace stepscope::collect::telemetry::bandwidth
