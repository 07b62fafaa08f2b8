// The addresses below the token: the page itself, and what it asks (docs/serve.md).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "serve/http.h"
#include "serve/runs.h"

namespace stepscope::serve {

class Api {
 public:
  explicit Api(Runs& runs) : runs_(runs) {}

  // From any thread.
  Response answer(const Request& request);

 private:
  Response of_run(const Request& request);
  Response of_scene(const Request& request, OpenedRun& recorded);
  Response diff(const Request& request, OpenedRun& run, const std::string& name);
  // The newest state of the run that parameter `name` names, or why there is none now.
  struct Asked {
    std::shared_ptr<OpenedRun> run;
    Response refusal;
    std::string name;  // of the run
  };
  Asked asked_for(const Request& request, const std::string& name);

  Runs& runs_;
  std::atomic<int> long_ones_{0};  // see LongTurn
};

}  // namespace stepscope::serve
