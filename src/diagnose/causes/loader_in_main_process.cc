// Batches made by the training process itself, one after the other with its steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "diagnose/loading.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kHandedOver = 1.3;  // times what making a batch takes: that a worker makes it and hands it over

// Part of what is loaded that the thread of the steps still loses when a worker loads it beside: cores of which all
// work are slower than one that works alone, since many of them share a core's units or its memory. As measured in this
// very job, where torch has one thread (hooks: torch_settings.py); nullopt: not known.
std::optional<double> lost_beside(const Case& about) {
  const auto cores = number_set(about.trace, "cores"), threads = number_set(about.trace, "torch_threads");
  const auto speed = ratio_set(about.trace, "cores_speed_permille");
  if (!cores || !speed || *speed <= 0 || *cores < 2 || threads.value_or(0) != 1) return std::nullopt;
  // Two threads that work on more than two cores have cores of their own, halves or not.
  if (*cores > 3) return 0;
  return std::clamp(static_cast<double>(*cores) / *speed - 1, 0.0, 1.0);
}

// How many times as long as it loads the thread of the steps does all else. What is below is in times of loading, too.
double computes(const Case& about, const Loading& load) {
  const auto loads_ns = static_cast<double>(std::max<std::int64_t>(load.time_ns, 1));
  return std::max(0.0, static_cast<double>(about.path_ns) - loads_ns) / loads_ns;
}

// As many workers as keep up with the steps, and no more than idle cores have room for.
std::int64_t workers_advised(const Case& about, const Loading& load) {
  constexpr double kMost = 16, kUsual = 4;  // where nobody knows what is idle
  const double room = std::round(idle_cores_of_rank(about, load).value_or(kUsual));
  const double needed = std::ceil(kHandedOver / std::max(computes(about, load), kHandedOver / kMost));
  return std::lround(std::clamp(needed, 1.0, std::clamp(room, 1.0, kMost)));
}

// What the steps still wait for their workers: on a core a batch takes as long as it does here, and then it is handed
// over. Workers without an idle core of their own make none.
double waits_for_workers(const Case& about, const Loading& load) {
  const auto workers = static_cast<double>(workers_advised(about, load));
  const double cores = std::clamp(load.idle_cores.value_or(workers), kIdleCore, workers);
  return std::clamp(kHandedOver / cores - computes(about, load), 0.0, 1.0);
}

// What is left over at the least, since all cores together cannot do more than they idle now.
double bound_by_cores(const Case& about, const Loading& load) {
  const auto cores = number_set(about.trace, "cores");
  if (!cores || *cores < 1 || !load.idle_cores) return 0;
  const double busy = 1 - std::clamp(*load.idle_cores / static_cast<double>(*cores), 0.0, 1.0);
  const double rest = computes(about, load);
  return std::clamp(busy * (1 + rest) - rest, 0.0, 1.0);
}

// What the steps lose at the most where torch's threads take all cores: workers and they share them, so that all
// are slower for it. With a device these threads only launch.
double loses_to_a_worker(const Case& about, const Loading& load) {
  const auto cores = number_set(about.trace, "cores"), threads = number_set(about.trace, "torch_threads");
  if (!cores || !threads || *cores < 2 || *threads < *cores || about.trace.device.size() > 0) return 0;
  const auto workers = static_cast<double>(workers_advised(about, load));
  const double slower = (static_cast<double>(*threads) + workers) / static_cast<double>(*cores);
  const double rest = computes(about, load);
  return std::clamp(std::max(0.0, slower * kHandedOver / workers - rest) + (slower - 1) * rest, 0.0, 1.0);
}

// A library runs the loop over the batches, as a Trainer does: where the program calls it says nothing of them.
bool library_asks(const Code& code) {
  const CodeFrame* own = code.own();
  if (own == nullptr) return false;
  return std::any_of(own + 1, code.stack.data() + code.stack.size(),
                     [](const CodeFrame& frame) { return !frame.file.empty() && !frame.is("torch/"); });
}

}  // namespace

Cause loader_in_main_process_cause() {
  return {
      "loader_in_main_process", "Data loaded in the training process itself",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const Loading& load = loading(about);
        // A range that the program marked itself is on this thread as well.
        if (load.where == LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
        // Workers need cores: without an idle one, or where torch's threads have them all, they take their time from
        // the step. What is made cheaper, or before, may be gone all the same.
        const bool idle = load.idle_cores.value_or(1) >= kIdleCore;
        constexpr double kLeftWithoutRoom = 0.6, kMostLeft = 0.7;
        const double loses = loses_to_a_worker(about, load);
        const bool room = idle && loses < kMostLeft;
        const double lost = room ? std::max(lost_beside(about).value_or(0), bound_by_cores(about, load)) : 0,
                     waits = room ? std::max(waits_for_workers(about, load) + 0.05, loses) : kLeftWithoutRoom,
                     left = std::min(1.0, std::max(lost + 0.05, waits));
        const std::string cheaper = fmt::format(
            "Make __getitem__ and collate_fn cheaper, or prepare the data before; DataLoader(..., num_workers=1, "
            "persistent_workers=True) helps little where {}",
            idle ? "torch's threads have all cores" : "no core is idle");
        Diagnosis found = waits_for_loader(
            about, load, "Batches are loaded in the training process itself, while the step waits",
            room ? fmt::format("DataLoader(..., num_workers={}, persistent_workers=True), and pin_memory=True where a "
                               "GPU takes them; or make each batch cheaper, or prepare the data before",
                               workers_advised(about, load))
                 : cheaper,
            lost, left);
        found.rest_stays = true;
        const double rest = 1 - about.share(load.time_ns);
        if (room && rest > 0) {
          found.finding.evidence.push_back(
              {.text = "Times as fast if nothing had to be loaded, at most", .value = 1 / rest});
        }
        const bool is_made_here = put_where_it_is_made(about, load, found.finding.where);
        if (const CodeFrame* busy = load.making.own(); busy != nullptr) {
          found.finding.sentence += fmt::format(": {}", busy->function);
          found.finding.evidence.push_back(
              {.text = fmt::format("Most of it is in {}, {}:{}", busy->function, busy->file, busy->line),
               .value = Value()});
          if (!room || (!is_made_here && library_asks(load.code))) load.making.put_into(found.finding.where);
        }
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
