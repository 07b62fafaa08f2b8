// Workers of a data loader that do not keep up, where more of them would have no core.
#include "diagnose/loading.h"
#include "diagnose/reading.h"

namespace stepscope::diagnose::causes {

Cause loader_slow_workers_cause() {
  return {"loader_slow_workers", "Slow workers of the data loader", [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
            if (has_room(load) || keeps_up(load) || waits_for_disks(about)) return;  // else that is the cause
            out.push_back(
                waits_for_loader(about, load, "The workers of the data loader do not keep up",
                                 "Make __getitem__ and collate_fn cheaper, or prepare the data before; more workers "
                                 "would help only with cores of their own",
                                 0, 0.1));
          }};
}

}  // namespace stepscope::diagnose::causes
