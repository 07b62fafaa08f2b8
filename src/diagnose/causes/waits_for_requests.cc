// A service whose thread has nothing to do: no change of what it does makes its answers come sooner.
#include <utility>

#include "diagnose/code_between.h"
#include "diagnose/gathered.h"

namespace stepscope::diagnose::causes {

Cause waits_for_requests_cause() {
  return {"waits_for_requests", "The thread of the model has nothing to do",
          [](const Case& about, std::vector<Diagnosis>& out) {
            Gathered waiting(about);
            for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
              if (one.doing == Doing::waiting) waiting.add(one.node, about.work(one.node), "waiting", 1, 1);
            }
            if (!waiting.worth_saying()) return;
            Diagnosis found = waiting.diagnosis(
                {.cause = "serving",
                 .sentence = "The thread that calls the model mostly waits for something to do",
                 .next = "Look at what is before it: clients, the event loop, other threads of Python; one thread "
                         "answers more requests than come"});
            found.rewrite = {};
            found.no_gain = "None: it is no work.";
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
