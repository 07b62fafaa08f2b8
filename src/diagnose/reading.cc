#include "diagnose/reading.h"

#include <algorithm>

#include "diagnose/code_between.h"
#include "diagnose/loading.h"
#include "diagnose/sampled.h"

namespace stepscope::diagnose {
namespace {

std::optional<Reading> look_at_reading(const Case& about) {
  constexpr double kLeastBytes = 256 << 10;  // a step, of what is worth asking about
  constexpr double kLeastTime = 0.02;
  const std::int64_t rank = about.trace.rank.rank;
  const auto from_devices = rate_in_steps(about.run, rank, "read_from_devices");
  const auto some = rate_on_machine(about.run, rank, "io_pressure_some");
  if (!from_devices || !some || *some < kLeastTime) return std::nullopt;
  Reading out{.some = *some, .all = rate_on_machine(about.run, rank, "io_pressure_full").value_or(0)};
  out.bytes_per_step = *from_devices * static_cast<double>(about.path_ns) / static_cast<double>(about.steps);
  if (out.bytes_per_step < kLeastBytes) return std::nullopt;
  const auto called = rate_in_steps(about.run, rank, "read");
  if (called && *called >= *from_devices) out.share = *from_devices / *called;
  return out;
}

}  // namespace

const std::optional<Reading>& reading(const Case& about) {
  return about.shared<std::optional<Reading>>(look_at_reading);
}

std::int64_t waits_for_files_ns(const Case& about) {
  std::int64_t ns = loading(about).time_ns;
  for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
    if (one.doing == Doing::reading) ns += about.on_path(one.node);
  }
  return ns;
}

bool waits_for_disks(const Case& about) {
  const std::optional<Reading>& read = reading(about);
  const std::int64_t waits_ns = waits_for_files_ns(about);
  return read && waits_ns > 0 && read->some >= 0.5 * about.share(waits_ns);
}

}  // namespace stepscope::diagnose
