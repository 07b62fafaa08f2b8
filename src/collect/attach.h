// Brings the hooks into processes that were started with nothing special.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/processes/ranks.h"

namespace stepscope::collect {

struct Attached {
  RankProcess rank;
  std::int64_t stopped_ns = 0;  // how long its main thread stood still
};

struct NotAttached {
  RankProcess rank;
  Error why;
};

struct Attachment {
  std::vector<Attached> ranks;
  std::vector<NotAttached> failed;
};

// The Python source that arms the hooks of folder `hooks` in the process that runs it; they write into `run_folder` and
// wait for a request. What fails goes into hooks.log there.
std::string attach_source(const std::string& hooks, const std::string& run_folder, const std::string& capture);

// The longest that a main thread is waited for: a step of a large model.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(20);

// Runs that source in each of the processes, one after the other; `patience`: for each of their main threads.
Attachment attach(const std::vector<RankProcess>& ranks, const std::string& source,
                  std::chrono::milliseconds patience = kPatience);

}  // namespace stepscope::collect
