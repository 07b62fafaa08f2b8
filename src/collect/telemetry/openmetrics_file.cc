#include "collect/telemetry/openmetrics_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "collect/telemetry/groups.h"
#include "collect/telemetry/openmetrics.h"
#include "run/living.h"
#include "run/manifest.h"

namespace stepscope::collect::telemetry {
namespace {

// Of the many that a ring holds only the newest are asked for; taking all of them apart costs a hundred times more.
void keep_newest(run::Ring& ring, std::size_t steps) {
  auto from = ring.marks.end();
  for (std::size_t met = 0; from != ring.marks.begin() && met <= steps; --from) {
    met += std::prev(from)->kind == run::MarkKind::step ? 1 : 0;
  }
  ring.marks.erase(ring.marks.begin(), from);
}

// A rank that was started anew counts as it is now.
std::vector<run::RankProgress> ranks_of(const std::string& run_folder) {
  std::map<std::int64_t, run::RankProgress> newest;
  for (const std::string& path : run::ring_files(run_folder)) {
    auto ring = is_visible(path) ? run::read_ring(path) : fail({});
    if (!ring) continue;
    keep_newest(*ring, kMetricsSteps);
    const run::RankProgress now = run::progress_of(*ring, kMetricsSteps);
    const auto [known, is_new] = newest.try_emplace(now.rank, now);
    if (!is_new && now.last_end_ns > known->second.last_end_ns) known->second = now;
  }
  std::vector<run::RankProgress> ranks;
  for (auto& [rank, progress] : newest) ranks.push_back(std::move(progress));
  return ranks;
}

bool is_locked(int file) { return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

OpenMetricsFile::~OpenMetricsFile() {
  if (held_ >= 0) close(held_);
}

void OpenMetricsFile::write(std::vector<Newest> sampled) {
  const auto done = replace(openmetrics_text(
      {job_, run::host_name(), std::move(sampled), ranks_of(run_folder_), monotonic_ns(), run::unix_now_ns()}));
  const std::lock_guard lock(mutex_);
  problem_ = done ? "" : to_text(done.error());
}

std::string OpenMetricsFile::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

bool OpenMetricsFile::is_others() const {
  const int file = held_ >= 0 ? -1 : open(path_.c_str(), O_RDWR | O_CLOEXEC);
  const bool is_theirs = file >= 0 && is_locked(file);
  if (file >= 0) close(file);
  return is_theirs;
}

Result<void> OpenMetricsFile::replace(const std::string& text) {
  const std::string draft = path_ + ".tmp";
  const Error others{ErrorKind::unreadable, "no OpenMetrics: another stepscope writes this file", path_, std::nullopt,
                     "Give each job a file of its own with --openmetrics FILE"};
  const auto not_written = [&](int reason) {
    return fail({ErrorKind::unreadable, std::string("no OpenMetrics: ") + std::strerror(reason), path_, std::nullopt,
                 "Choose another file with --openmetrics FILE"});
  };
  if (is_others()) return fail(others);
  const int file = open(draft.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return not_written(errno);
  if (is_locked(file)) {
    close(file);
    return fail(others);
  }
  if (ftruncate(file, 0) != 0 || !write_all(file, text) || rename(draft.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    unlink(draft.c_str());
    close(file);
    return not_written(reason);
  }
  if (held_ >= 0) close(held_);
  held_ = file;
  return {};
}

}  // namespace stepscope::collect::telemetry
