// Batches made by the training process itself, one after the other with its steps.
#include "diagnose/loading.h"
#include "model/telemetry.h"

namespace stepscope::diagnose::causes {

Cause loader_in_main_process_cause() {
  return {
      "loader_in_main_process", "Data loaded in the training process itself",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const Loading& load = loading(about);
        // A range that the program marked itself is on this thread as well.
        if (load.where == LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
        // Workers need cores: without an idle one they take their time from the step.
        const bool room = load.idle_cores.value_or(1) >= kIdleCore;
        const double left = room ? 0.05 : 0.6;
        out.push_back(waits_for_loader(
            about, load, "Batches are loaded in the training process itself, while the step waits",
            room ? "DataLoader(..., num_workers=4, persistent_workers=True), and pin_memory=True where a GPU takes them"
                 : "DataLoader(..., num_workers=1, persistent_workers=True) helps little where no core is idle: make "
                   "__getitem__ cheaper, or prepare the data before",
            0, left));
      }};
}

}  // namespace stepscope::diagnose::causes
