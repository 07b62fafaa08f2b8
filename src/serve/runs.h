// The runs that the page can show. Each is opened in the background when it is first asked for, and again when its
// files have changed: a job that still runs shows what it has written so far. The page knows them by opaque ids, never
// by path.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"
#include "query/query.h"
#include "serve/made_once.h"
#include "timeline/pyramid.h"

namespace stepscope::serve {

class Scene;

using Opener =
    std::function<Result<Run>(const std::vector<std::string>& paths, const std::function<void(double)>& progress)>;

// One state of a run, opened: never changed, so that any thread may read it while a newer one is made.
class OpenedRun {
 public:
  // `again` opens the same files once more, and fails with ErrorKind::changed where they are not the same any more.
  OpenedRun(Run run, std::uint64_t revision, std::function<Result<Run>()> again);
  ~OpenedRun();

  const Run& run() const { return run_; }
  // Timelines from here on are no recordings but predictions, in the order of the recordings.
  std::size_t predicted_from() const { return predicted_from_; }
  // The timelines, and beside each what it would be with `changes` (session/changes.h, one a line), as a run of its own
  // that has no report; nullptr: it is not made. The last two that were asked for are kept.
  std::shared_ptr<OpenedRun> with_predicted(const std::string& changes);
  // Makes it: opens the files twice more, so it takes as long. nullptr: another one is being made just now.
  Result<std::shared_ptr<OpenedRun>> make_predicted(const std::string& changes);
  std::uint64_t revision() const { return revision_; }  // see RunInfo
  // One per timeline of the run; see scene().
  const std::vector<std::unique_ptr<timeline::Pyramid>>& pyramids() const { return pyramids_; }
  // Made when first asked for; nullptr, nothing: somebody else is having it made just now, and nobody else waits for
  // it.
  const Scene* scene();
  const Result<std::string>* report_json();  // the whole report
  // Valid as long as this.
  query::Source source();

 private:
  Run run_;
  std::uint64_t revision_;
  std::function<Result<Run>()> again_;
  std::size_t predicted_from_ = SIZE_MAX;
  std::mutex predicting_mutex_;  // held while one is made
  std::mutex predicted_mutex_;
  std::vector<std::pair<std::string, std::shared_ptr<OpenedRun>>> predicted_;  // by changes; the newest is the last
  std::vector<std::unique_ptr<timeline::Pyramid>> pyramids_;
  MadeOnce<Scene> scene_;
  MadeOnce<Result<std::string>> report_;
  std::mutex answers_mutex_;
  std::map<std::string, std::shared_ptr<const Answer>> answers_;
};

// Of the files of a run: one of them was written, added or removed when it differs.
struct FileState {
  std::uint64_t files = 0, bytes = 0;
  std::filesystem::file_time_type newest = std::filesystem::file_time_type::min();
  friend bool operator==(const FileState&, const FileState&) = default;
};

enum class RunState : std::uint8_t { closed, opening, ready, failed };

struct RunInfo {
  std::string id, name;  // the name is the end of its path, as much as tells it from the others
  RunState state = RunState::closed;
  double share = 0;  // of the opening
  std::optional<Error> error;
  std::uint64_t revision = 0;  // how often it was opened
  bool live = false;           // its files changed in the last minute
};

class Runs {
 public:
  // `groups`: the paths of each run.
  Runs(const std::vector<std::vector<std::string>>& groups, Opener opener);
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  std::vector<RunInfo> list();
  // The newest state; nullptr: it is being opened, failed, or there is none (then no info either).
  std::shared_ptr<OpenedRun> get(const std::string& id, std::optional<RunInfo>& info);

 private:
  struct Entry;
  void work_in_background();
  void look(Entry& entry, std::unique_lock<std::mutex>& lock);
  void open(Entry& entry, std::unique_lock<std::mutex>& lock);
  void close_others();

  Opener opener_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::thread thread_;
};

// What the paths of a command line mean: files together are one run, a folder is one, and of a folder of run folders
// each is one.
std::vector<std::vector<std::string>> group_paths(const std::vector<std::string>& paths);
// Each is one, whatever it holds.
std::vector<std::vector<std::string>> each_path(const std::vector<std::string>& paths);

}  // namespace stepscope::serve
