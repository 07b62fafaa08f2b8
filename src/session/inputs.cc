#include "session/inputs.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "formats/gzip_stream.h"
#include "model/memory_state.h"
#include "run/manifest.h"
#include "run/run_folder.h"
#include "run/schema_version.h"
#include "session/looks_like.h"
#include "session/memory_files.h"

namespace stepscope::session {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 64 << 10;

Error refused(const std::string& path, const Look& look) {
  return {ErrorKind::unrecognized, "is no trace that stepscope knows: it looks like " + look.what, path, std::nullopt,
          look.hint};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Result<std::string> read_head(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return fail({missing ? ErrorKind::not_found : ErrorKind::unreadable,
                 missing ? "no such file or folder" : std::string("cannot be read: ") + std::strerror(errno), path,
                 std::nullopt, missing ? "Check the path" : "Check its permissions"});
  }
  if (!S_ISREG(info.st_mode)) {
    return fail({ErrorKind::unreadable, "is not a regular file (a pipe, socket or device)", path, std::nullopt,
                 "Write it to a file first: traces are read in several places at once"});
  }
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    return fail({ErrorKind::unreadable, std::string("cannot be opened: ") + std::strerror(errno), path, std::nullopt,
                 "Check its permissions"});
  }
  std::string head(kHeadBytes, '\0');
  const ssize_t got = pread(file.fd, head.data(), head.size(), 0);
  head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (head.size() >= 2 && head[0] == '\x1f' && head[1] == '\x8b') {
    std::string text(kHeadBytes, '\0');
    formats::GzipStream stream(file.fd, static_cast<std::uint64_t>(info.st_size));
    text.resize(stream.read(text.data(), text.size()));
    if (text.empty()) return fail(refused(path, {"an empty or broken gzip file", "Copy or record the file again"}));
    return text;
  }
  return head;
}

// What a newer stepscope wrote beside the traces is not read; the traces are.
void check_manifest(const std::string& path, std::vector<Issue>& issues) {
  const auto version = run::stated_schema_version(path);
  if (!version || *version <= run::kManifestVersion) return;
  issues.push_back({"newer_run_folder", Severity::info, run::newer_schema("run.json", *version, run::kManifestVersion),
                    "Use the stepscope that recorded the run, or a newer one", 1, path, std::nullopt, std::nullopt});
}

// Others' files lie in folders too; an empty one, or one named as recordings are, was meant as a trace.
bool is_meant_as_trace(const std::string& path) {
  if (path.ends_with(".trace.json") || path.ends_with(".json.gz")) return true;
  std::error_code ignored;
  const std::string name = fs::path(path).filename().string();
  return name.ends_with(".json") && (name.find("rank") != name.npos || fs::file_size(path, ignored) == 0);
}

// All files below the folder, in order; what could not be looked at is told.
std::vector<std::string> files_below(const std::string& folder, std::size_t most, std::vector<Issue>& issues) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end && found.size() < most; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) found.push_back(at->path().string());
    if (at->is_directory(ignored) && access(at->path().c_str(), R_OK | X_OK) != 0) {
      issues.push_back({"folder_left_out", Severity::lost, at->path().string() + " cannot be opened",
                        "Check its permissions", 1, at->path().string(), std::nullopt, std::nullopt});
    }
  }
  if (error || at != fs::recursive_directory_iterator()) {
    issues.push_back({"folder_cut", Severity::lost,
                      error ? "the folder could not be read to its end: " + error.message()
                            : "only the first " + std::to_string(most) + " files of the folder were looked at",
                      "Give the folder that holds the traces, or the traces themselves", 1, folder, std::nullopt,
                      std::nullopt});
  }
  std::sort(found.begin(), found.end());
  return found;
}

// `stepscope run` puts each run into a folder of its own with a run.json; a folder above several of them is no run. The
// newest that holds a recording is taken, and the others are told of.
void keep_newest_run(std::vector<std::string>& found, const std::string& folder, std::vector<Issue>& issues) {
  std::vector<std::pair<fs::file_time_type, std::string>> runs;  // when it was written last, with a slash at the end
  std::error_code ignored;
  for (const std::string& path : found) {
    const fs::path file(path);
    if (file.filename() != "run.json") continue;
    if (fs::equivalent(file.parent_path(), folder, ignored)) return;
    runs.emplace_back(fs::last_write_time(file, ignored), file.parent_path().string() + "/");
  }
  if (runs.size() < 2) return;
  std::sort(runs.rbegin(), runs.rend());
  const auto has_any = [&](const auto& run, const auto& is_one) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& path) {
      return path.starts_with(run.second) && is_one(std::string_view(path).substr(run.second.size()));
    });
  };
  const auto has_steps = [&](const auto& run) {
    return has_any(run, [](std::string_view path) {
      return path.starts_with("traces/") || path.starts_with(std::string(run::kNsysFolder) + "/") ||
             (path.starts_with("telemetry/") && path.ends_with(".ring")) || path.starts_with("memory_trace/");
    });
  };
  const auto has_samples = [&](const auto& run) {
    return has_any(run, [](std::string_view path) { return path.starts_with("telemetry/"); });
  };
  auto first = std::find_if(runs.begin(), runs.end(), has_steps);
  if (first == runs.end()) first = std::find_if(runs.begin(), runs.end(), has_samples);  // what monitor left
  const std::string newest = (first == runs.end() ? runs.begin() : first)->second;
  const auto empty = first == runs.end() ? 0 : first - runs.begin();  // that are newer
  std::erase_if(found, [&](const std::string& path) {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const auto& run) { return run.second != newest && path.starts_with(run.second); });
  });
  issues.push_back({"other_runs", Severity::info,
                    "the folder holds " + std::to_string(runs.size()) + " runs; the newest " +
                        (empty > 0 ? "with a recording " : "") + "was opened: " + newest,
                    "Give the folder of another run to open that one", runs.size() - 1, folder, std::nullopt,
                    std::nullopt});
}

void add_folder(const std::string& folder, std::size_t most, std::vector<InputFile>& files,
                std::vector<Issue>& issues) {
  std::vector<std::string> found = files_below(folder, most, issues);
  keep_newest_run(found, folder, issues);
  for (const std::string& path : found) {
    if (const auto reader = recognize(path)) {
      files.push_back({path, *reader, true});
    } else if (is_meant_as_trace(path)) {
      issues.push_back({"file_left_out", Severity::lost, path + " " + reader.error().message, reader.error().hint, 1,
                        path, std::nullopt, std::nullopt});
    } else if (fs::path(path).filename() == "run.json") {
      check_manifest(path, issues);
    }
  }
}

// nsys writes REPORT.nsys-rep and exports it to REPORT.sqlite beside it: the same recording, which is read once.
void drop_exported_reports(std::vector<InputFile>& files) {
  std::set<std::string> paths;
  for (const InputFile& file : files) paths.insert(file.path);
  std::erase_if(files, [&](const InputFile& file) {
    fs::path exported = file.path;
    return file.found && exported.extension() == ".nsys-rep" && paths.contains(exported.replace_extension(".sqlite"));
  });
}

// `stepscope run --nsys` leaves a report for each of its windows. They are of the same processes, so one is opened, as
// of several windows that torch recorded: the largest.
void keep_one_nsys_window(std::vector<InputFile>& files, std::vector<Issue>& issues) {
  const auto is_window = [](const InputFile& file) {
    const fs::path folder = fs::path(file.path).parent_path();
    std::error_code ignored;
    return file.found && file.reader->name == "nsys_sqlite" && folder.filename() == run::kNsysFolder &&
           fs::exists(folder.parent_path() / "run.json", ignored);
  };
  const auto size = [](const InputFile& file) {
    std::error_code ignored;
    return fs::file_size(file.path, ignored);
  };
  const InputFile* kept = nullptr;
  std::size_t windows = 0;
  for (const InputFile& file : files) {
    if (!is_window(file)) continue;
    windows++;
    if (kept == nullptr || size(file) > size(*kept)) kept = &file;
  }
  if (windows < 2) return;
  const std::string path = kept->path;
  std::erase_if(files, [&](const InputFile& file) { return is_window(file) && file.path != path; });
  issues.push_back({"other_windows", Severity::info,
                    "nsys recorded " + std::to_string(windows) + " windows; the largest was opened: " + path,
                    "Give the file of another window to open that one", windows - 1, path, std::nullopt, std::nullopt});
}

// Leaves out the files that this reader found where there are others; true: there are none but these. Files of the
// device's memory are no others: they say nothing of when things ran.
bool leave_to_others(std::vector<InputFile>& files, std::string_view reader) {
  const auto is_its = [&](const InputFile& file) { return file.found && file.reader->name == reader; };
  const auto count = [&](const auto& is_one) { return std::count_if(files.begin(), files.end(), is_one); };
  const auto its = count(is_its);
  if (its + count(is_memory_file) == static_cast<std::ptrdiff_t>(files.size())) return its > 0;
  std::erase_if(files, is_its);
  return false;
}

// The marks of a run's ranks, its telemetry and its states of memory are opened where nothing better is: beside traces
// they are looked at by run_marks, run_telemetry and run_memory.
void prefer_traces(std::vector<InputFile>& files, std::vector<Issue>& issues) {
  if (leave_to_others(files, kMemoryStateFiles)) {
    issues.push_back({"only_memory", Severity::info, "no trace was recorded beside this state of memory",
                      "See it: stepscope report --only memory_state", 1, files.front().path, std::nullopt,
                      std::nullopt});
    return;
  }
  if (leave_to_others(files, kSampleFiles)) {
    issues.push_back({"only_samples", Severity::info, "no trace was recorded beside this telemetry",
                      "See it: stepscope report --only system,counters", 1, files.front().path, std::nullopt,
                      std::nullopt});
    return;
  }
  if (!leave_to_others(files, "marks")) return;
  issues.push_back({"only_marks", Severity::info,
                    "no trace was recorded in this run; its steps and phases are from the marks that each rank keeps",
                    "Record a trace of some steps: stepscope run --steps 1:3 -- …, or stepscope attach --job", 1,
                    files.front().path, std::nullopt, std::nullopt});
}

std::vector<std::string> expand_glob(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t result{};
  if (glob(pattern.c_str(), GLOB_TILDE, nullptr, &result) == 0) {
    found.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  }
  globfree(&result);
  return found;
}

}  // namespace

Result<const read::Reader*> recognize(const std::string& path) {
  const Result<std::string> head = read_head(path);
  if (!head) return fail(head.error());
  for (const read::Reader& reader : read::readers()) {
    if (reader.recognizes(*head)) return &reader;
  }
  return fail(refused(path, looks_like(*head)));
}

namespace {

// Pickles that were named go to the reader of snapshots whatever they hold: it refuses them with the reason.
Result<const read::Reader*> recognize_named(const std::string& path) {
  auto reader = recognize(path);
  if (reader || reader.error().kind != ErrorKind::unrecognized) return reader;
  const Result<std::string> head = read_head(path);
  if (head && looks_like_pickle(*head, path)) return read::reader_named("cuda_snapshot");
  return reader;
}

}  // namespace

Result<std::vector<InputFile>> find_inputs(std::span<const std::string> paths, std::vector<Issue>& issues,
                                           std::size_t most_files) {
  std::vector<InputFile> files;
  std::vector<Error> errors;
  for (const std::string& path : paths) {
    std::vector<std::string> matches{path};
    std::error_code error;
    if (!fs::exists(path, error) && path.find_first_of("*?[") != std::string::npos) matches = expand_glob(path);
    if (matches.empty()) {
      errors.push_back({ErrorKind::not_found, "no file matches this pattern", path, std::nullopt, "Check the pattern"});
    }
    for (const std::string& match : matches) {
      if (fs::is_directory(match, error)) {
        const std::size_t before = files.size();
        add_folder(match, most_files, files, issues);
        if (files.size() == before) {
          errors.push_back({ErrorKind::not_found, "no trace was found in this folder", match, std::nullopt,
                            "Record one: stepscope run -- python train.py"});
        }
      } else if (const auto reader = recognize_named(match)) {
        files.push_back({match, *reader});
      } else {
        errors.push_back(reader.error());
      }
    }
  }
  drop_exported_reports(files);
  keep_one_nsys_window(files, issues);
  keep_newest_snapshots(files, issues);
  prefer_traces(files, issues);
  std::set<std::string> seen;  // the same file given twice is read once
  std::erase_if(files, [&](const InputFile& file) {
    std::error_code error;
    return !seen.insert(fs::weakly_canonical(file.path, error).string()).second;
  });
  if (files.empty()) {
    if (errors.empty()) {
      return fail({ErrorKind::usage, "no path was given", "", std::nullopt, "Give a trace file or a folder of them"});
    }
    return fail(errors.front());
  }
  for (const Error& error : errors) {
    issues.push_back(
        {"file_left_out", Severity::lost, to_text(error), error.hint, 1, error.file, error.offset, std::nullopt});
  }
  return files;
}

}  // namespace stepscope::session
