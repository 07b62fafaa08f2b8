// run.json: what ran, and what became of it (docs/run-folder.md). Written when the job starts and again when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "run/run_folder.h"

namespace stepscope::run {

inline constexpr int kManifestVersion = 1;
inline constexpr int kNoteVersion = 1;  // of processes/HOST_PID.json, which the hooks write

// What a process of the job said in processes/HOST_PID.json.
// A trace that the job wrote itself.
struct OwnTrace {
  std::string path;   // where it is
  std::string trace;  // where it belongs in the run folder, relative to it
};

struct ProcessNote {
  std::string file;  // relative to the run folder
  std::string json;  // the whole note, valid JSON on one line
  std::string host;
  std::int64_t pid = 0;
  bool is_rank = false;  // false: a launcher
  std::optional<std::int64_t> rank;
  double cost_s = 0;  // of the job's time that starting, stopping and writing its recordings took
  std::int64_t steps_seen = 0;
  std::int64_t whole_steps = 0;  // recorded ones
  std::optional<std::int64_t> first_step;
  std::optional<std::int64_t> last_step;
  std::vector<std::string> traces;  // files of its recordings, relative to the run folder; may still be on their way
  struct Part {
    std::string trace;
    std::vector<std::int64_t> steps;  // whole ones; of a step with stacks none
  };
  std::vector<Part> parts;
  std::string compilations;        // JSON: rows of model/settings.h; empty: none, or not known
  std::string page_faults;         // JSON: [steps that nobody recorded, faults of the middle one]; empty: not counted
  std::string page_faults_around;  // JSON: {"before": the same of those before the first recording, "after": …,
                                   // "recorded": …, "recording_ns": …}
  std::string given_the_same;      // JSON: rows of model/settings.h; empty: none
  bool own_profiler = false;       // the job profiles itself
  std::int64_t own_profiled_steps = 0;  // those that ended meanwhile
  std::string own_profiler_file;        // where it makes the profiler; empty: not known
  std::int64_t own_profiler_line = 0;
  std::vector<OwnTrace> own_traces;
  bool detached = false;                   // the hooks left the process again
  bool ended = true;                       // as Python ends, or not known; false: it runs, or was killed
  std::string device;                      // cuda, cpu
  std::optional<std::int64_t> batch_size;  // of its data loader
  std::string first_problem;
  std::string refused;                          // why an attach found no entrance
  std::map<std::string, std::string> requests;  // their numbers, and what became of them in this process
  std::int64_t finishing_pid = 0;               // of a child that still writes what ran when the process was ended
};

struct Manifest {
  std::string version;  // of stepscope
  std::string job;
  Arguments command;      // secrets masked by to_json
  std::string directory;  // working directory of the job
  std::string host;
  std::string capture;                                           // as handed to the hooks
  std::vector<std::pair<std::string, std::string>> environment;  // by allow-list, secrets masked
  std::int64_t started_unix_ns = 0;
  std::optional<std::int64_t> ended_unix_ns;
  std::optional<int> exit_code;  // as passed through: 128 + signal when killed
  std::optional<int> signal;
  std::vector<std::string> problems;
  std::vector<ProcessNote> processes;
};

// A run that starts now, on this host and in this folder; the environment is this process's.
Manifest start_manifest(std::string_view stepscope_version, const std::string& job, const Arguments& command,
                        const std::string& capture);
std::int64_t unix_now_ns();

// Command with the values of options and NAME=value words that look like secrets replaced by ***.
Arguments masked(const Arguments& command);

// Variables that explain a run (ranks, CUDA, NCCL, OMP, torch, Slurm), values of secret-looking names replaced by ***.
std::vector<std::pair<std::string, std::string>> explaining_environment(char** environ_of_process);

std::string to_json(const Manifest& manifest);

// Writes run.json beside its final name and renames it.
Result<void> write_manifest(const std::string& run_folder, const Manifest& manifest);
Result<void> write_manifest_as(const std::string& path, const Manifest& manifest);

// "; starting, stopping and writing took the job 12 s", where that is worth saying, else nothing.
std::string cost_text(double cost_s);

// All notes in processes/. A note that is no JSON becomes a problem and is left out.
std::vector<ProcessNote> read_process_notes(const std::string& run_folder, std::vector<std::string>& problems);

// The same, once no child of an ended process writes any more; waits for `patience_s` at most.
std::vector<ProcessNote> settled_process_notes(const std::string& run_folder, double patience_s,
                                               std::vector<std::string>& problems);

}  // namespace stepscope::run
