// A model that is read from its file, and put in place, for each request or step.
#include <cstdint>
#include <set>

#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {

Cause model_loaded_again_cause() {
  return {
      "model_loaded_again", "A model loaded among the steps", [](const Case& about, std::vector<Diagnosis>& out) {
        std::set<std::uint32_t> loading;
        for (const Trace& trace : timelines(about.run)) {
          const Source& source = about.places.source(trace);
          for (const Operation& one : about.operations(trace)) {
            if (!restores_model(source, about.code(trace, one.slice))) continue;
            loading.insert(one.nodes.begin(), one.nodes.end());
            loading.insert(one.after.begin(), one.after.end());
          }
        }
        for (const BetweenOperators& one : code_between(about)) {
          if (one.doing == Doing::restoring) loading.insert(one.node);
        }
        Gathered model(about);
        for (const std::uint32_t node : loading) {
          const Work work = about.work(node);
          model.add(node, work, work.operation == SliceId::none ? "code between operators" : work.name(), 0, 0.05);
        }
        if (!model.worth_saying()) return;
        out.push_back(model.diagnosis(
            {.cause = "io",
             .sentence = "The steps wait while a model is loaded from its file",
             .next = "Load each model once and keep it, by name in a dict or behind functools.lru_cache, as many as "
                     "memory has room for"}));
        out.back().finding.where.op.reset();
      }};
}

}  // namespace stepscope::diagnose::causes
