// Waits for the files that the told processes write, and says of every other one why there is none.
//
// Kineto writes PATH.tmp and renames it, so a file under its final name is whole; that it ends as a trace does and has
// stopped growing is looked at all the same, as network file systems show names before contents.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collect/kineto_daemon/serve.h"

namespace stepscope::collect::kineto {

struct CollectOptions {
  // How long to wait behind the planned end (a trace by time) or from now (by iteration). Writing takes Kineto seconds.
  std::chrono::milliseconds patience{60000};
  std::function<bool()> cancelled;  // looked at five times a second; may be empty
};

struct TraceFile {
  int pid = 0;
  std::string
      path;  // readable here; below /proc/PID/root when the process has its own files, so move it while it lives
  std::uint64_t bytes = 0;
  std::int64_t first_poll_unix_ns = 0;
  std::int64_t accepted_unix_ns = 0;  // when it took the request
  bool elsewhere = false;             // Kineto refused the prefix and wrote to its own place in /tmp
};

enum class Reason : std::uint8_t {
  no_daemon_variable,  // started without KINETO_USE_DAEMON
  other_folder,        // its KINETO_IPC_SOCKET_DIR names a folder that was not served
  never_asked,         // the variable is set (or cannot be read), but it did not ask in time
  too_late,            // it asked when the others could no longer be joined
  busy,                // another trace ran in it
  ended,               // the process ended before its file was there
  nothing_written,     // told, alive, no file within the patience
  still_writing,       // the same, but an unfinished file is there: collect again
};

struct Missing {
  int pid = 0;
  Reason reason = Reason::never_asked;
  std::string text;  // a sentence for people without a final full stop
  std::string hint;  // starts with a verb
};

struct Collected {
  std::vector<TraceFile> files;  // by pid
  std::vector<Missing> missing;  // by pid
};

// `server` goes on answering meanwhile (told processes would else log that the daemon is gone); null: another daemon
// does. Can be called again with the same `served`.
Collected collect_traces(Server* server, const Served& served, const CollectOptions& options);

}  // namespace stepscope::collect::kineto
