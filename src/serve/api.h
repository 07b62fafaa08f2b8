// The addresses below the token: the page itself, and what it asks (docs/serve.md).
#pragma once

#include <memory>
#include <mutex>

#include "serve/http.h"
#include "serve/runs.h"

namespace stepscope::serve {

class Scene;

class Api {
 public:
  explicit Api(Runs& runs) : runs_(runs) {}
  ~Api();

  // From any thread.
  Response answer(const Request& request);

 private:
  struct Made {
    std::shared_ptr<OpenedRun> run;
    std::shared_ptr<Scene> scene;
  };
  Response of_run(const Request& request);
  std::shared_ptr<Scene> scene_of(const std::shared_ptr<OpenedRun>& run);

  Runs& runs_;
  std::mutex mutex_;
  std::vector<Made> scenes_;
};

}  // namespace stepscope::serve
