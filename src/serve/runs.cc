#include "serve/runs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/short_names.h"
#include "base/workers.h"
#include "model/windows.h"
#include "report/report.h"
#include "serve/scene.h"
#include "session/changes.h"
#include "session/session.h"
#include "session/what_if.h"

namespace stepscope::serve {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::seconds(2);
constexpr auto kStillWritten = std::chrono::seconds(60);
constexpr int kPatience = 5;                // so many times as long as it took to open a run it stays as it is
constexpr std::size_t kMostOpen = 4;        // runs
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

constexpr std::size_t kMostPredicted = 2;

Error files_changed() {
  return {ErrorKind::changed, "the files of the run changed since it was opened", "", std::nullopt,
          "The page asks again when it was opened anew"};
}

}  // namespace

OpenedRun::OpenedRun(Run run, std::uint64_t revision, std::function<Result<Run>()> again)
    : run_(std::move(run)), revision_(revision), again_(std::move(again)) {}
OpenedRun::~OpenedRun() = default;

const Scene* OpenedRun::scene() {
  return scene_.get([this] {
    const auto traces = timelines(run_);
    pyramids_.resize(traces.size());
    for_each_index(traces.size(), usable_cores(),
                   [&](std::size_t i) { pyramids_[i] = std::make_unique<timeline::Pyramid>(traces[i]); });
    return Scene(*this);
  });
}

std::shared_ptr<OpenedRun> OpenedRun::with_predicted(const std::string& changes) {
  const std::lock_guard lock(predicted_mutex_);
  const auto known =
      std::find_if(predicted_.begin(), predicted_.end(), [&](const auto& one) { return one.first == changes; });
  if (known == predicted_.end()) return nullptr;
  std::rotate(known, known + 1, predicted_.end());
  return predicted_.back().second;
}

Result<std::shared_ptr<OpenedRun>> OpenedRun::make_predicted(const std::string& changes) {
  const std::unique_lock making(predicting_mutex_, std::try_to_lock);
  if (!making.owns_lock()) return nullptr;
  if (auto made = with_predicted(changes)) return made;
  const auto wanted = session::read_changes(changes);
  if (!wanted) return fail(wanted.error());
  Result<Run> both = again_(), predicted = again_();
  if (!both) return fail(both.error());
  if (!predicted) return fail(predicted.error());
  if (const auto moved = session::become_predicted(*predicted, *wanted); !moved) return fail(moved.error());
  const std::size_t recorded = timelines(*both).size();
  if (timelines(*predicted).size() != recorded) return fail(files_changed());
  for (Run* run : {&*both, &*predicted}) {
    run->traces.erase(run->traces.begin() + static_cast<std::ptrdiff_t>(recorded), run->traces.end());
  }
  std::move(predicted->traces.begin(), predicted->traces.end(), std::back_inserter(both->traces));
  auto opened = std::make_shared<OpenedRun>(*std::move(both), revision_, nullptr);
  opened->predicted_from_ = recorded;
  std::shared_ptr<OpenedRun> oldest;  // freed without the lock
  const std::lock_guard lock(predicted_mutex_);
  if (predicted_.size() >= kMostPredicted) {
    oldest = std::move(predicted_.front().second);
    predicted_.erase(predicted_.begin());
  }
  predicted_.emplace_back(changes, opened);
  return opened;
}

const Result<std::string>* OpenedRun::report_json() {
  return report_.get([this]() -> Result<std::string> {
    const Result<Report> made = session::answer(run_, {});
    if (!made) return fail(made.error());
    return report::to_json(*made);
  });
}

query::Source OpenedRun::source() {
  return {&run_, session::answer_names(), [this](const std::string& name) -> Result<std::shared_ptr<const Answer>> {
            {
              const std::lock_guard lock(answers_mutex_);
              if (const auto known = answers_.find(name); known != answers_.end()) return known->second;
            }
            auto answer = session::one_answer(run_, name);
            if (!answer) return fail(answer.error());
            const std::lock_guard lock(answers_mutex_);
            return answers_.emplace(name, std::make_shared<const Answer>(*std::move(answer))).first->second;
          }};
}

struct Runs::Entry {
  std::vector<std::string> paths;
  RunInfo info;
  std::shared_ptr<OpenedRun> opened;
  bool wanted = false, to_look = false;
  FileState files;
  Clock::time_point looked, changed, asked;
  Clock::time_point opened_at;
  Clock::duration took{};  // to open it
};

Runs::Runs(const std::vector<std::vector<std::string>>& groups, Opener opener) : opener_(std::move(opener)) {
  std::vector<std::string> firsts;
  for (const auto& paths : groups) firsts.push_back(paths.front());
  const std::vector<std::string> names = short_names(firsts);
  for (const auto& paths : groups) {
    auto entry = std::make_unique<Entry>();
    entry->paths = paths;
    entry->info.id = "r" + std::to_string(entries_.size() + 1);
    entry->info.name = names[entries_.size()];
    if (paths.size() > 1) entry->info.name += " and " + std::to_string(paths.size() - 1) + " more";
    entries_.push_back(std::move(entry));
  }
  if (entries_.size() == 1) entries_.front()->wanted = true;
  thread_ = std::thread([this] { work_in_background(); });
}

Runs::~Runs() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

// What a walk over the files finds; without the lock, as a file system may be slow.
void Runs::look(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.to_look = false;
  const std::vector<std::string> paths = entry.paths;
  lock.unlock();
  const FileState files = state_of(paths);
  lock.lock();
  const auto now = Clock::now();
  entry.looked = now;
  if (files != entry.files) {
    entry.files = files;
    entry.changed = now;
  }
  const bool changed = entry.changed > entry.opened_at;
  entry.info.live =
      entry.info.revision > 0 && entry.changed != Clock::time_point() && now - entry.changed < kStillWritten;
  // A run of gigabytes that is still written is not opened without end.
  if (changed && now - entry.opened_at > kPatience * entry.took) entry.wanted = true;
}

std::vector<RunInfo> Runs::list() {
  const std::lock_guard lock(mutex_);
  std::vector<RunInfo> found;
  for (const auto& entry : entries_) {
    const bool open = entry->info.state == RunState::ready || entry->info.state == RunState::failed;
    if (open && Clock::now() - entry->looked > kBetweenLooks) {
      entry->to_look = true;
      wake_.notify_all();
    }
    found.push_back(entry->info);
  }
  return found;
}

std::shared_ptr<OpenedRun> Runs::get(const std::string& id, std::optional<RunInfo>& info) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->info.id != id) continue;
    entry->asked = Clock::now();
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

// First what nobody has seen yet, then what is to be opened anew.
void Runs::work_in_background() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Entry* next = nullptr;
    bool anything = false;
    for (const auto& entry : entries_) {
      anything = anything || entry->wanted || entry->to_look;
      if (entry->wanted && (next == nullptr || (next->opened && !entry->opened))) next = entry.get();
    }
    if (closing_) return;
    if (!anything) {
      wake_.wait(lock);
      continue;
    }
    for (const auto& entry : entries_) {
      if (entry->to_look && !closing_) look(*entry, lock);
    }
    if (next != nullptr && !closing_) open(*next, lock);
  }
}

void Runs::open(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.wanted = false;
  if (entry.info.state == RunState::closed || entry.info.state == RunState::failed) {
    entry.info.state = RunState::opening;
  }
  entry.info.share = 0;
  const std::vector<std::string> paths = entry.paths;
  const std::uint64_t revision = entry.info.revision + 1;
  lock.unlock();
  const auto began = Clock::now();
  const FileState files = state_of(paths);
  Result<Run> run = opener_(paths, [&](double share) {
    const std::lock_guard told(mutex_);
    entry.info.share = share;
  });
  std::shared_ptr<OpenedRun> before;  // freed without the lock
  std::shared_ptr<OpenedRun> opened;
  std::optional<Error> error;
  if (run) {
    opened = std::make_shared<OpenedRun>(*std::move(run), revision, [this, paths, files]() -> Result<Run> {
      Result<Run> again = opener_(paths, [](double) {});
      if (state_of(paths) != files) return fail(files_changed());
      return again;
    });
  } else {
    error = run.error();
  }
  lock.lock();
  entry.files = files;
  entry.looked = entry.opened_at = Clock::now();
  entry.took = entry.opened_at - began;
  if (opened) {
    before = std::exchange(entry.opened, std::move(opened));
    entry.info.state = RunState::ready;
    entry.info.error.reset();
    entry.info.revision = revision;
    close_others();
  } else if (!entry.opened) {  // else the page keeps what it has
    entry.info.state = RunState::failed;
    entry.info.error = std::move(error);
  }
  lock.unlock();
  before.reset();
  lock.lock();
}

// Of many runs those that were asked for last stay open.
void Runs::close_others() {
  for (;;) {
    Entry* oldest = nullptr;
    std::size_t open = 0;
    for (const auto& entry : entries_) {
      if (!entry->opened) continue;
      open++;
      if (oldest == nullptr || entry->asked < oldest->asked) oldest = entry.get();
    }
    if (open <= kMostOpen || oldest == nullptr) return;
    oldest->opened.reset();
    oldest->info.state = RunState::closed;
    oldest->info.live = false;
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

std::vector<std::vector<std::string>> each_path(const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string& path : paths) groups.push_back({path});
  return groups;
}

}  // namespace stepscope::serve
