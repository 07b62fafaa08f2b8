// Workers of a data loader that do not keep up, while cores are idle.
#include "diagnose/loading.h"

namespace stepscope::diagnose::causes {

Cause loader_too_few_workers_cause() {
  return {"loader_too_few_workers", "Too few workers of the data loader",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
            if (!has_room(load) || keeps_up(load)) return;
            out.push_back(waits_for_loader(about, load,
                                           "The workers of the data loader do not keep up, while cores are idle",
                                           "Raise num_workers by the idle cores", 0, 0.1));
          }};
}

}  // namespace stepscope::diagnose::causes
