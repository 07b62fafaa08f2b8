// The addresses below the token: the page itself, and what it asks (docs/serve.md).
#pragma once

#include <atomic>
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
  Response of_scene(const Request& request, OpenedRun& run);
  Response query(OpenedRun& run, const std::string& sql);

  Runs& runs_;
  std::atomic<int> queries_{0};  // that run now
};

}  // namespace stepscope::serve
