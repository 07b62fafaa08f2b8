#include "collect/telemetry/sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/duration.h"

namespace stepscope::collect::telemetry {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kGlance = kSecond / 10, kMetricsEvery = 10 * kSecond;
constexpr auto kPatience = std::chrono::seconds(2);  // with a driver, before the job begins and after it ended

// How often this collector is to be sampled, in ms; 0: not at all.
int interval_of(const Collector& collector, const SamplerOptions& options) {
  int usual = options.interval_ms > 0 ? options.interval_ms : collector.interval_ms;
  if (collector.on_request) usual = std::max(usual, collector.interval_ms);  // it may cost the job
  if (options.only.empty()) return collector.on_request ? 0 : usual;
  for (const Choice& choice : options.only) {
    if (choice.collector == collector.name) return choice.interval_ms > 0 ? choice.interval_ms : usual;
  }
  return 0;
}

// 0: it is none.
int milliseconds(std::string_view text) {
  constexpr double kLongest = 3'600'000;
  const double ms = 1000 * read_duration(text, BareNumber::refused).value_or(0);
  return ms > 0 && ms <= kLongest ? std::max(1, static_cast<int>(std::lround(ms))) : 0;
}

// Asks who is watched, and tells the lanes when it has changed: once a second, and soon after a file has come into the
// folder of marks, since a rank that begins its first step is known by that.
struct Watching {
  FindGroups find;
  std::shared_ptr<SampleFile> file;
  Lane* own;  // which does this
  std::shared_ptr<Lane> drivers;
  std::string marks;
  std::vector<Group> groups;
  fs::file_time_type newest;
  std::int64_t next_ns = 0;

  void operator()() {
    std::error_code code;
    const fs::file_time_type changed = fs::last_write_time(marks, code);
    const bool has_new = !code && std::exchange(newest, changed) != changed;
    if (const std::int64_t now = monotonic_ns(); has_new || now >= next_ns) {
      next_ns = now + kSecond - kGlance / 2;
      look();
    }
  }

  void look() {
    std::vector<Group> found = find();
    if (found == groups) return;
    groups = std::move(found);
    for (const Group& group : groups) file->rename(group.target, group.name.empty() ? group.target : group.name);
    own->follow(groups);
    drivers->follow(groups);
  }
};

}  // namespace

std::string collector_names() {
  std::string names;
  for (const Collector& one : collectors()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

Result<int> parse_interval(std::string_view text) {
  if (const int interval_ms = milliseconds(text); interval_ms > 0) return interval_ms;
  return fail({ErrorKind::usage,
               "'" + std::string(text) + "' is no time between two samples",
               {},
               {},
               "Write it as 500ms or 1s, from 1ms to an hour"});
}

Result<std::vector<Choice>> parse_collectors(std::string_view text) {
  std::vector<Choice> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = item.find(':');
    const std::string name(item.substr(0, colon));
    int interval_ms = 0;
    if (colon != item.npos) {
      const auto interval = parse_interval(item.substr(colon + 1));
      if (!interval) return fail(interval.error());
      interval_ms = *interval;
    }
    bool known = false;
    for (const Collector& one : collectors()) {
      if (name != one.name && (name != "default" || one.on_request)) continue;
      std::erase_if(out, [&](const Choice& before) { return before.collector == one.name; });
      out.push_back({std::string(one.name), interval_ms, name == one.name});
      known = true;
    }
    if (!known) {
      return fail(
          {ErrorKind::usage, "'" + name + "' is no collector", {}, {}, "There are: default, " + collector_names()});
    }
  }
  return out;
}

Result<std::unique_ptr<Sampler>> Sampler::start(const std::string& run_folder, const SamplerOptions& options,
                                                FindGroups find_groups) {
  auto file = SampleFile::create(run_folder, options.most_bytes);
  if (!file) return fail(file.error());
  std::unique_ptr<Sampler> sampler(new Sampler);
  sampler->wanted_ = options.only;
  sampler->file_ = std::make_shared<SampleFile>(std::move(*file));
  const auto own = std::make_shared<Lane>(sampler->file_, options.roots);
  const auto drivers = std::make_shared<Lane>(sampler->file_, options.roots);
  for (const Collector& collector : options.from) {
    const int interval_ms = interval_of(collector, options);
    if (interval_ms > 0) (collector.own_thread ? drivers : own)->add(collector, interval_ms);
  }
  if (find_groups) {
    const std::string marks = fs::path(sampler->file_->path()).parent_path().string();
    own->every(kGlance, Watching{std::move(find_groups), sampler->file_, own.get(), drivers, marks, {}, {}});
  }
  own->every(kSecond, [file = sampler->file_] { file->clock(); });
  if (!options.openmetrics.empty()) {
    sampler->metrics_ = std::make_shared<OpenMetricsFile>(options.openmetrics, options.job, run_folder);
    const auto write = [file = sampler->file_, metrics = sampler->metrics_] { metrics->write(file->newest()); };
    own->every(kMetricsEvery, write);
    own->at_the_end(write);
  }
  sampler->lanes_ = {own, drivers};
  for (const auto& lane : sampler->lanes_) Lane::begin(lane);
  const auto deadline = Lane::Clock::now() + kPatience;
  for (const auto& lane : sampler->lanes_) lane->is_open_by(deadline);
  return sampler;
}

std::vector<std::string> Sampler::end() {
  const auto deadline = Lane::Clock::now() + kPatience;
  for (const auto& lane : lanes_) lane->end();
  std::vector<std::string> problems;
  for (const auto& lane : lanes_) {
    if (lane->leave_by(deadline)) continue;
    problems.push_back(std::string("some telemetry is missing: ") +
                       (lane == lanes_.front() ? "a file of the system" : "the driver of a GPU") +
                       " did not answer. See why in dmesg");
  }
  if (file_) file_->close();
  if (file_ && !file_->problem().empty()) problems.push_back(file_->problem());
  if (metrics_ && !metrics_->problem().empty()) problems.push_back(metrics_->problem());
  return problems;
}

std::vector<Absent> Sampler::absent() const {
  std::vector<Absent> all;
  for (const auto& lane : lanes_) {
    for (Absent& one : lane->absent()) all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::string> Sampler::missed() const {
  std::vector<std::string> sentences;
  for (const Absent& one : absent()) {
    const bool is_named = std::any_of(wanted_.begin(), wanted_.end(), [&](const Choice& choice) {
      return choice.is_named && choice.collector == one.collector;
    });
    if (is_named) sentences.push_back("no " + one.collector + " is sampled: " + to_text(one.why));
  }
  return sentences;
}

std::int64_t Sampler::cpu_ns() const {
  std::int64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->cpu_ns();
  return sum;
}

}  // namespace stepscope::collect::telemetry
