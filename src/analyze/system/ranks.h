// What was sampled of each rank, joined with its steps and phases (Run::history).
//
// What counters grew by in a step is interpolated between their samples; a phase's rate is the one that explains all
// samples best, since phases are often shorter than the time between two samples (model/telemetry.h).
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/answer.h"
#include "model/step_parts.h"
#include "model/telemetry.h"
#include "model/trace.h"

namespace stepscope::analyze::telemetry {

// mean: a level that the driver says as a mean of the time before; its samples hold mixtures of phases as counters do.
enum class Form { cores, per_second, watts, mean, level };
enum class Of { rank, its_gpu, its_host, its_processors };

// What is known of each rank at any moment: a column of the tables.
struct Measure {
  std::string_view column, collector, name;
  Form form;
  Unit unit;
  std::string_view meaning;
  Of of = Of::rank;
  double most = INFINITY;    // that is possible
  std::int64_t late_ms = 0;  // so much later it may be counted that something happened
};
// A look is not instant. The kernel counts what a thread did at its ticks, of 1 to 10 ms, and bytes when a system call
// ends; drivers of GPUs tell of the time before.
inline constexpr std::int64_t kLookMs = 1, kTickMs = 5, kCallMs = 10, kDriverMs = 50;
inline constexpr std::array kMeasures{
    Measure{"cores", "cpu", "cpu_time", Form::cores, Unit::none,
            "Cores that the rank, its data loading workers and other children kept busy", Of::rank, INFINITY, kLookMs},
    Measure{"main_thread", "cpu", "main_thread_time", Form::cores, Unit::ratio,
            "Part of one core that its main thread used: all that a Python program has there", Of::rank, 1, kTickMs},
    Measure{"main_thread_wait", "cpu", "main_thread_wait", Form::cores, Unit::ratio,
            "Part of the time in which its main thread could have run and had no core", Of::rank, 1, kTickMs},
    Measure{"host_idle_cores", "host", "cpu_idle", Form::cores, Unit::none, "Cores of its machine that nobody used",
            Of::its_host, INFINITY, kTickMs},
    Measure{"rss_bytes", "memory", "rss", Form::level, Unit::bytes, "Memory in use"},
    Measure{"read_bytes_per_s", "io", "read", Form::per_second, Unit::bytes, "Read per second by system calls",
            Of::rank, INFINITY, kCallMs},
    Measure{"written_bytes_per_s", "io", "written", Form::per_second, Unit::bytes, "Written per second by system calls",
            Of::rank, INFINITY, kCallMs},
    Measure{"gpu_utilization", "gpu", "gpu_utilization", Form::mean, Unit::ratio,
            "Part of the time in which any kernel ran on its GPU, as the driver says", Of::its_gpu, 1, kDriverMs},
    Measure{"gpu_tensor_active", "gpm", "gpu_tensor_active", Form::mean, Unit::ratio,
            "Part of the time in which the tensor cores of its GPU worked", Of::its_gpu, 1},
    Measure{"gpu_memory_bytes", "gpu", "gpu_memory_used", Form::level, Unit::bytes,
            "Memory in use on its GPU, by all processes", Of::its_gpu},
    Measure{"gpu_watts", "gpu", "gpu_energy", Form::watts, Unit::none,
            "Power of its GPU, by the energy that the driver counts", Of::its_gpu, INFINITY, kDriverMs},
};
enum : std::size_t { kCores, kMainThread, kMainThreadWait, kHostIdle };

// What a step takes of something that is used up.
struct Amount {
  std::string_view column, collector, name;
  double scale;  // of the column's unit in one of the counter's
  Unit unit;
  std::string_view meaning;
  Of of = Of::rank;
};
inline constexpr std::array kAmounts{
    Amount{"cpu_ns", "cpu", "cpu_time", 1, Unit::ns, "CPU time of all its threads, workers and children"},
    Amount{"read_bytes", "io", "read", 1, Unit::bytes, "Read by system calls"},
    Amount{"written_bytes", "io", "written", 1, Unit::bytes, "Written by system calls"},
    Amount{"gpu_joules", "gpu", "gpu_energy", 1e-6, Unit::none, "Energy of its GPU in J", Of::its_gpu},
    Amount{"host_joules", "power", "energy", 1e-6, Unit::none,
           "Energy of the processors of its machine in J, whoever used them", Of::its_processors},
};

enum : std::size_t { kGpuJoules = 3, kHostJoules = 4 };
static_assert(kAmounts[kGpuJoules].column == "gpu_joules" && kAmounts[kHostJoules].column == "host_joules");

using Cells = std::array<std::optional<double>, kMeasures.size()>;

struct RankSystem {
  std::int64_t rank = 0;
  std::string host;
  std::string gpu;                                             // "gpu 3", as its collector calls it; empty: not known
  double host_cores = INFINITY;                                // of its machine; infinite: not known
  const Trace* history = nullptr;                              // its steps and phases; none: not known
  std::array<Sampled, kMeasures.size()> series{};              // about == nullptr: not sampled
  std::array<Curve, kMeasures.size()> integrals;               // of means: what the samples of their series are then
  std::array<std::vector<Sampled>, kAmounts.size()> counters;  // what the amount is the sum of; empty: not sampled
  Interval steps;                                              // from the first to the last
  Kinds phases = Kinds(kPhases);
  std::array<std::int64_t, kPhases> phase_ns{};
  std::array<Cells, kPhases> by_phase;
  std::optional<double> samples_per_step;  // of the data loader: its batches in a step times their size

  std::int64_t all_phases_ns() const;
};

std::vector<RankSystem> ranks_of(const Run& run);  // by rank

// What a measure was during a stretch of time; nullopt where its samples do not reach.
std::optional<double> during(const RankSystem& rank, std::size_t measure, Interval when);

// How much of it was used during a stretch of time.
std::optional<double> used(const RankSystem& rank, std::size_t amount, Interval when);

// The steps, as far as samples reach; all samples where there are no steps; empty without any.
Interval measured_time(const RankSystem& rank);

// The whole steps in which this amount is known, and what they took of it on average.
std::optional<double> per_step(const RankSystem& rank, std::size_t amount);

}  // namespace stepscope::analyze::telemetry
