#include "collect/telemetry/cgroup_files.h"

#include <algorithm>

#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

using run::SeriesKind;

constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;  // version 1 says so by the largest number of whole pages

Level level(const char* name, const std::string& target, const char* unit, const char* meaning) {
  return Level({"cgroup", name, target, unit, SeriesKind::gauge, meaning});
}

Growth growth(const char* name, const std::string& target, const char* unit, const char* meaning,
              std::int64_t scale = 1) {
  return Growth({"cgroup", name, target, unit, SeriesKind::counter, meaning}, {scale, 0, 0});
}

// The first of two files that is there.
KeptFile either(const std::string& wanted, const std::string& older) {
  KeptFile file(wanted);
  return file.is_open() ? std::move(file) : KeptFile(older);
}

// nullopt: none of them says a limit.
std::optional<std::int64_t> lowest(std::vector<KeptFile>& files) {
  std::optional<std::int64_t> lowest;
  for (KeptFile& file : files) {
    const auto limit = first_number(file.read());  // "max" is no number
    if (limit && *limit >= 0 && *limit < kNoLimit) lowest = std::min(*limit, lowest.value_or(*limit));
  }
  return lowest;
}

}  // namespace

CgroupCpuTime::CgroupCpuTime(const Roots&, const CgroupPlace& place, const std::string& target)
    : unified_(place.unified),
      file_(place.folder + (unified_ ? "/cpu.stat" : "/cpuacct.usage")),
      time_(growth("cpu_time", target, "ns", "CPU time of all processes in the cgroup and below it",
                   unified_ ? 1000 : 1)) {}

void CgroupCpuTime::sample(Sink& sink) {
  const std::string_view text = file_.read();
  const auto time = unified_ ? number_after(text, "usage_usec") : first_number(text);
  if (time) time_.add(sink, *time);
}

CgroupCpuQuota::CgroupCpuQuota(const Roots&, const CgroupPlace& place, const std::string& target)
    : unified_(place.unified),
      quota_(level("cpu_quota", target, "cores",
                   "CPU time per time that the processes may have, by the tightest limit of the cgroup or above it")),
      periods_(growth("cpu_periods", target, "count", "Periods of the quota in which the processes ran")),
      throttled_periods_(growth("cpu_throttled_periods", target, "count", "Periods in which they were stopped")),
      throttled_time_(growth("cpu_throttled_time", target, "ns",
                             "Time for which they were stopped because the quota was used up, all cores together",
                             unified_ ? 1000 : 1)) {
  for (const std::string& folder : with_ancestors(place)) {
    Place& one = places_.emplace_back(Place{{}, KeptFile(folder + "/cpu.stat")});
    if (unified_) {
      one.limit.emplace_back(folder + "/cpu.max");
    } else {
      one.limit.emplace_back(folder + "/cpu.cfs_quota_us");
      one.limit.emplace_back(folder + "/cpu.cfs_period_us");
    }
  }
}

std::optional<double> CgroupCpuQuota::cores_of(Place& place) const {
  const std::string_view text = place.limit[0].read();
  std::size_t at = 0;
  const auto quota = next_number(text, at);  // "max" and -1: none
  const auto period = unified_ ? next_number(text, at) : first_number(place.limit[1].read());
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void CgroupCpuQuota::find_tightest(Sink& sink) {
  std::optional<double> least;
  std::size_t tightest = 0;
  for (std::size_t i = 0; i < places_.size(); i++) {
    const auto cores = cores_of(places_[i]);
    if (!cores || (least && *cores >= *least)) continue;
    least = cores;
    tightest = i;
  }
  if (least) quota_.add(sink, *least);
  if (tightest == tightest_) return;
  tightest_ = tightest;
  for (Growth* series : {&periods_, &throttled_periods_, &throttled_time_}) series->begin_anew();
}

void CgroupCpuQuota::sample(Sink& sink) {
  if (limits_.now()) find_tightest(sink);
  const std::string_view text = places_[tightest_].stat.read();
  if (const auto number = number_after(text, "nr_periods")) periods_.add(sink, *number);
  if (const auto number = number_after(text, "nr_throttled")) throttled_periods_.add(sink, *number);
  const auto time = number_after(text, unified_ ? "throttled_usec" : "throttled_time");
  if (time) throttled_time_.add(sink, *time);
}

CgroupMemory::CgroupMemory(const Roots&, const CgroupPlace& place, const std::string& target)
    : unified_(place.unified),
      used_(place.folder + (unified_ ? "/memory.current" : "/memory.usage_in_bytes")),
      events_(place.folder + (unified_ ? "/memory.events" : "/memory.failcnt")),
      kills_(place.folder + (unified_ ? "/memory.events" : "/memory.oom_control")),
      used_series_(level("memory_used", target, "bytes",
                         "Memory of the cgroup and below it, with contents of files that can be given back")),
      limit_(level("memory_limit", target, "bytes",
                   "Memory above which processes are killed, by the tightest limit of the cgroup or above it")),
      high_(level("memory_high", target, "bytes",
                  "Memory above which processes are slowed down, by the tightest limit of the cgroup or above it")),
      high_hits_(growth("memory_high_hits", target, "count", "Times that processes were slowed down to free memory")),
      limit_hits_(growth("memory_limit_hits", target, "count", "Times that the memory limit was reached")),
      ooms_(growth("memory_ooms", target, "count", "Times that no memory could be freed at the limit")),
      oom_kills_(growth("oom_kills", target, "count", "Processes that were killed because memory ran out")) {
  for (const std::string& folder : with_ancestors(place)) {
    limits_.emplace_back(folder + (unified_ ? "/memory.max" : "/memory.limit_in_bytes"));
    if (unified_) soft_limits_.emplace_back(folder + "/memory.high");
  }
}

void CgroupMemory::sample(Sink& sink) {
  if (const auto bytes = first_number(used_.read())) used_series_.add(sink, static_cast<double>(*bytes));
  if (others_.now()) sample_others(sink);
}

void CgroupMemory::sample_others(Sink& sink) {
  if (const auto bytes = lowest(limits_)) limit_.add(sink, static_cast<double>(*bytes));
  if (const auto bytes = lowest(soft_limits_)) high_.add(sink, static_cast<double>(*bytes));
  const std::string_view events = events_.read();
  if (unified_) {
    if (const auto count = number_after(events, "high")) high_hits_.add(sink, *count);
    if (const auto count = number_after(events, "max")) limit_hits_.add(sink, *count);
    if (const auto count = number_after(events, "oom")) ooms_.add(sink, *count);
  } else if (const auto count = first_number(events)) {
    limit_hits_.add(sink, *count);
  }
  if (const auto count = number_after(kills_.read(), "oom_kill")) oom_kills_.add(sink, *count);
}

CgroupDevices::CgroupDevices(const Roots& roots, const CgroupPlace& place, std::string target)
    : roots_(roots),
      target_(std::move(target)),
      file_(place.unified ? KeptFile(place.folder + "/io.stat")
                          : either(place.folder + "/blkio.throttle.io_service_bytes_recursive",
                                   place.folder + "/blkio.throttle.io_service_bytes")) {}

CgroupDevices::Device* CgroupDevices::device(std::string_view number) {
  constexpr std::size_t kMostDevices = 64;
  const auto known = devices_.find(number);
  if (known != devices_.end()) return &known->second;
  if (devices_.size() == kMostDevices) return nullptr;
  std::string name(number);
  KeptFile about(roots_.sys + "/dev/block/" + name + "/uevent");
  for_each_line(about, [&](std::string_view line) {  // read() would take the text away that the caller is in
    if (line.starts_with("DEVNAME=") && line.size() < 64) name = line.substr(8);
  });
  const std::string target = target_ + " " + name;
  Device device{growth("device_read", target, "bytes", "Bytes that the cgroup read from the block device"),
                growth("device_written", target, "bytes", "Bytes that the cgroup wrote to the block device")};
  return &devices_.emplace(number, std::move(device)).first->second;
}

// Version 2: "8:0 rbytes=1 wbytes=2 …" a line, though some kernels leave a line's end out. Version 1: "8:0 Read 1".
void CgroupDevices::sample(Sink& sink) {
  std::string_view text = file_.read();
  Device* current = nullptr;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    const bool is_number = word[0] >= '0' && word[0] <= '9';
    if (is_number && word.find(':') != word.npos) {
      current = word.find_first_not_of("0123456789:") == word.npos ? device(word) : nullptr;
    } else if (word == "Total") {
      current = nullptr;
    } else if (current != nullptr && word == "Read") {
      if (const auto bytes = first_number(text)) current->read.add_seldom(sink, *bytes);
    } else if (current != nullptr && word == "Write") {
      if (const auto bytes = first_number(text)) current->written.add_seldom(sink, *bytes);
    } else if (current != nullptr && word.starts_with("rbytes=")) {
      if (const auto bytes = first_number(word.substr(7))) current->read.add_seldom(sink, *bytes);
    } else if (current != nullptr && word.starts_with("wbytes=")) {
      if (const auto bytes = first_number(word.substr(7))) current->written.add_seldom(sink, *bytes);
    }
  }
}

}  // namespace stepscope::collect::telemetry
