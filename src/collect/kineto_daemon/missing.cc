// The sentences and the next steps; the environment of a silent process tells which of them is true.
#include "collect/kineto_daemon/missing.h"

#include <algorithm>

#include "collect/kineto_daemon/process.h"

namespace stepscope::collect::kineto {

Missing missing_trace(const Client& client, Reason reason) {
  Missing out{client.pid, reason, "process " + std::to_string(client.pid), ""};
  switch (reason) {
    case Reason::too_late:
      out.text += " asked too late to start with the others";
      out.hint = "Try again; give a longer poll interval if its KINETO_CONFIG sets one";
      break;
    case Reason::busy:
      out.text += " could not be asked: another profiler records in it";
      out.hint = "Try again when that is over";
      break;
    case Reason::ended:
      out.text += " ended before its trace was written";
      out.hint = "Ask earlier, or for a shorter trace";
      break;
    case Reason::still_writing:
      out.text += " is still writing its trace";
      out.hint = "Wait longer, or ask for a shorter trace";
      break;
    default:
      out.text += client.was_busy ? " recorded but wrote no file" : " took the request but recorded nothing";
      out.hint = client.was_busy ? "Look at what it printed (Kineto's lines on stderr)"
                                 : "Ask by time instead of iterations: a job without optimizer steps counts none";
      break;
  }
  return out;
}

Missing missing_question(int pid, const std::vector<std::string>& folders) {
  const std::string process = "process " + std::to_string(pid);
  if (!process_lives(pid)) return {pid, Reason::ended, process + " has ended", "Choose a running process"};
  if (process_variable(pid, "PATH") && !process_variable(pid, "KINETO_USE_DAEMON")) {
    return {pid, Reason::no_daemon_variable, process + " was not started with KINETO_USE_DAEMON=1",
            "Start the job with KINETO_USE_DAEMON=1"};
  }
  const std::string folder = process_variable(pid, "KINETO_IPC_SOCKET_DIR").value_or("");
  if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end()) {
    return {pid, Reason::other_folder, process + " asks in its KINETO_IPC_SOCKET_DIR, " + folder,
            "Answer in that folder"};
  }
  return {pid, Reason::never_asked, process + " did not ask for a configuration in time",
          "Wait until it has imported torch; give a longer poll interval if its KINETO_CONFIG sets one"};
}

}  // namespace stepscope::collect::kineto
