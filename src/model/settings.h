// What the hooks noted of the job's settings in torch and of its machine, beside each recording.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace stepscope {

// Its JSON ("true", "2", "\"highest\""); empty: not noted. `name`: "torch_threads", "cores", "anomaly_mode" …
std::string_view setting(const Trace& trace, std::string_view name);
std::optional<std::int64_t> number_set(const Trace& trace, std::string_view name);
// Of a note in thousandths, such as "cores_speed_permille", the ratio.
std::optional<double> ratio_set(const Trace& trace, std::string_view name);
inline bool is_set(const Trace& trace, std::string_view name) { return setting(trace, name) == "true"; }

// A note that is text; empty: not noted.
std::string text_set(const Trace& trace, std::string_view name);

// Key of what is noted of them; each part of a recording has its own.
inline constexpr std::string_view kCoreWaits = "stepscope_waits";

// Waits for a core that the thread of the steps had in a recorded step, `step`: its number. Shorter ones are not noted.
struct CoreWait {
  std::int64_t step = 0, ns = 0;
};
std::vector<CoreWait> core_waits(const Trace& trace);

// Other threads of Python in the process, and where each was most often in the program's code.
inline constexpr std::string_view kThreadsBeside = "stepscope_threads";
struct ThreadBeside {
  std::string name;
  std::int64_t ran_ns = 0;     // had a core
  std::string file, function;  // empty: not known
  std::int64_t function_line = 0, line = 0;
};
// Of the recorded parts of a job: in `stood_ns` of `recorded_ns` the thread of the steps neither ran nor waited for a
// core. Threads that did little are not noted; none: there was none, or nobody counted it.
struct ThreadsBeside {
  std::int64_t recorded_ns = 0, stood_ns = 0;
  std::vector<ThreadBeside> threads;
};
ThreadsBeside threads_beside(const Trace& trace);

// How often the process waited for a page of new memory in the middle step: of a timeline of those recorded, of
// Run::history of all others. nullopt: nobody counted it.
std::optional<double> page_faults_per_step(const Trace& trace);
// Of Run::history: the same of steps before something was recorded for the first time, and of those after.
struct FaultsAround {
  double before = 0, after = 0;
  std::int64_t recording_ns = 0;  // Unix time
  bool is_recorded = false;       // there were none before: as many more as the steps that were recorded first tell
  // What a recording leaves behind the job's own memory keeps that from going back to the system.
  bool kept_memory() const;
};
// `recorded`: a timeline of so many steps. nullopt: nobody counted it, or of fewer steps than tell what is usual.
std::optional<FaultsAround> faults_around_recording(const Trace& history, const Trace& recorded, std::int64_t steps);
// Of Run::history: of the middle step where nobody records at all.
std::optional<double> usual_page_faults(const Trace& history, const Trace& recorded, std::int64_t steps);
// What one such page takes on that machine; nullopt: nobody measured it. And its size.
std::optional<std::int64_t> page_ns(const Trace& trace);
double page_bytes(const Trace& trace);
inline constexpr double kManyPageFaults = 500;                            // of a step: they take 0.1 ms or more
inline constexpr std::string_view kPageFaults = "stepscope_page_faults";  // key of [steps, faults of the middle one]
// Key of {"before": the same until something was recorded, "after": …, "recording_ns": …, "recorded": [steps of that
// recording, faults of the one that has the least], "kept": false where the heap was left as it had been}.
inline constexpr std::string_view kPageFaultsAround = "stepscope_page_faults_around";

// What torch.compile compiled in a process: the newest 64 forward and backward passes; of Run::history.
inline constexpr std::string_view kCompilations = "stepscope_compilations";
struct Compilation {
  std::int64_t start_ns = 0, dur_ns = 0;  // Unix time
  std::string frame;                      // a number for each piece of code
  std::int64_t attempt = 0;               // how often it had been compiled before
  std::string guard;                      // why again; empty: not known, as of a backward pass
  std::string file, function;             // what of the program the guard is about; empty: not known
  std::int64_t line = 0;
};
std::vector<Compilation> compilations(const Trace& history);  // at most 1,024

// Functions of the program that were given the same in two steps, each call of them, of Run::history: file as frames
// are recorded, and first line.
inline constexpr std::string_view kGivenTheSame = "stepscope_given_the_same";
std::set<std::pair<std::string, std::int64_t>> given_the_same(const Trace& history);

// Share of the time in which the workers of its data loader make batches; nullopt: not noted.
std::optional<double> loader_busy(const Trace& trace);
// Share of the batches that the workers of its data loader had made before they were asked for; nullopt: not noted.
std::optional<double> batches_ready(const Trace& trace);
// Do they make batches faster than these are asked for, so that it is something else that is waited for? A batch that
// is there may still have to come over from a worker that is busy; nullopt: not known.
std::optional<bool> workers_keep_up(const Trace& trace);

}  // namespace stepscope
