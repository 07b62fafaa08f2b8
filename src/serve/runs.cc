#include "serve/runs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/workers.h"
#include "model/windows.h"
#include "report/report.h"
#include "session/session.h"

namespace stepscope::serve {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::seconds(2);
constexpr auto kStillWritten = std::chrono::seconds(60);
constexpr std::size_t kMostFiles = 20'000;  // of a folder that is watched
constexpr int kDeepestRun = 4;              // a run folder below a folder of jobs

FileState state_of(const std::vector<std::string>& paths) {
  FileState found;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    const auto bytes = fs::file_size(path, error);
    if (error) return;
    found.files++;
    found.bytes += bytes;
    const auto written = fs::last_write_time(path, error);
    if (!error) found.newest = std::max(found.newest, written);
  };
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, error)) {
      add(path);
      continue;
    }
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && at != end && found.files < kMostFiles; at.increment(error)) {
      // The rings of a job that runs are written all the time.
      if (at->is_regular_file(error) && at->path().extension() != ".ring") add(at->path());
    }
  }
  return found;
}

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = fs::path(path).filename();
  return name.empty() ? path : name;
}

}  // namespace

OpenedRun::OpenedRun(Run run) : run_(std::move(run)) {}

const std::vector<std::unique_ptr<timeline::Pyramid>>& OpenedRun::pyramids() {
  std::call_once(pyramids_made_, [this] {
    const auto traces = timelines(run_);
    pyramids_.resize(traces.size());
    for_each_index(traces.size(), usable_cores(),
                   [&](std::size_t i) { pyramids_[i] = std::make_unique<timeline::Pyramid>(traces[i]); });
  });
  return pyramids_;
}

Result<std::string> OpenedRun::report_json() {
  const std::lock_guard lock(mutex_);
  if (!report_) {
    Result<Report> made = session::answer(run_, {});
    report_ = made ? Result<std::string>(report::to_json(*made)) : fail(made.error());
  }
  return *report_;
}

query::Source OpenedRun::source() {
  return {&run_, session::answer_names(), [this](const std::string& name) -> Result<std::shared_ptr<const Answer>> {
            const std::lock_guard lock(mutex_);
            if (const auto known = answers_.find(name); known != answers_.end()) return known->second;
            auto answer = session::one_answer(run_, name);
            if (!answer) return fail(answer.error());
            return answers_[name] = std::make_shared<const Answer>(*std::move(answer));
          }};
}

struct Runs::Entry {
  std::vector<std::string> paths;
  RunInfo info;
  std::shared_ptr<OpenedRun> opened;
  bool wanted = false;
  FileState files;
  Clock::time_point looked = Clock::time_point::min(), changed = Clock::time_point::min();
};

Runs::Runs(const std::vector<std::vector<std::string>>& groups, Opener opener) : opener_(std::move(opener)) {
  for (const auto& paths : groups) {
    auto entry = std::make_unique<Entry>();
    entry->paths = paths;
    entry->info.id = "r" + std::to_string(entries_.size() + 1);
    entry->info.name = last_part(paths.front());
    if (paths.size() > 1) entry->info.name += " and " + std::to_string(paths.size() - 1) + " more";
    entries_.push_back(std::move(entry));
  }
  if (entries_.size() == 1) entries_.front()->wanted = true;
  thread_ = std::thread([this] { open_in_background(); });
}

Runs::~Runs() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

// Called with the lock held.
void Runs::look_for_changes(Entry& entry) {
  const auto now = Clock::now();
  if (entry.looked != Clock::time_point::min() && now - entry.looked < kBetweenLooks) return;
  entry.looked = now;
  const FileState files = state_of(entry.paths);
  const bool first = entry.info.state == RunState::closed;
  if (files == entry.files) {
    entry.info.live = entry.changed != Clock::time_point::min() && now - entry.changed < kStillWritten;
    return;
  }
  entry.files = files;
  if (first) return;
  entry.changed = now;
  entry.info.live = true;
  entry.wanted = true;
  wake_.notify_all();
}

std::vector<RunInfo> Runs::list() {
  const std::lock_guard lock(mutex_);
  std::vector<RunInfo> found;
  for (const auto& entry : entries_) {
    if (entry->info.state != RunState::closed) look_for_changes(*entry);
    found.push_back(entry->info);
  }
  return found;
}

std::shared_ptr<OpenedRun> Runs::get(const std::string& id, std::optional<RunInfo>& info) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->info.id != id) continue;
    if (entry->info.state == RunState::closed && !entry->wanted) {
      entry->wanted = true;
      wake_.notify_all();
    }
    info = entry->info;
    if (entry->wanted && info->state == RunState::closed) info->state = RunState::opening;
    return entry->opened;
  }
  return nullptr;
}

void Runs::open_in_background() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto wanted = [&] {
      return std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->wanted; });
    };
    wake_.wait(lock, [&] { return closing_ || wanted() != entries_.end(); });
    if (closing_) return;
    Entry& entry = **wanted();
    entry.wanted = false;
    if (entry.info.state == RunState::closed || entry.info.state == RunState::failed) {
      entry.info.state = RunState::opening;
    }
    entry.info.share = 0;
    entry.files = state_of(entry.paths);
    const std::vector<std::string> paths = entry.paths;
    lock.unlock();
    Result<Run> run = opener_(paths, [&](double share) {
      const std::lock_guard told(mutex_);
      entry.info.share = share;
    });
    lock.lock();
    if (run) {
      entry.opened = std::make_shared<OpenedRun>(*std::move(run));
      entry.info.state = RunState::ready;
      entry.info.error.reset();
      entry.info.revision++;
    } else if (!entry.opened) {  // else the page keeps what it has
      entry.info.state = RunState::failed;
      entry.info.error = run.error();
    }
  }
}

std::vector<std::vector<std::string>> group_paths(const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> groups;
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::pair<fs::file_time_type, std::string>> runs;
    const bool one = fs::exists(fs::path(path) / "run.json", error);
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
    for (; !one && !error && at != end; at.increment(error)) {
      if (at->is_directory(error)) {
        if (at.depth() >= kDeepestRun) at.disable_recursion_pending();
        const fs::path manifest = at->path() / "run.json";
        if (!fs::exists(manifest, error)) continue;
        runs.emplace_back(fs::last_write_time(manifest, error), at->path());
        at.disable_recursion_pending();
      }
    }
    if (runs.size() < 2) {
      groups.push_back({path});
      continue;
    }
    std::sort(runs.rbegin(), runs.rend());
    for (const auto& [written, folder] : runs) groups.push_back({folder});
  }
  if (!files.empty()) groups.insert(groups.begin(), files);
  return groups;
}

}  // namespace stepscope::serve
