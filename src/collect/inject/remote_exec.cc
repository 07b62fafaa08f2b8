#include "collect/inject/remote_exec.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/command_output.h"
#include "collect/inject/payload.h"
#include "collect/processes/obstacles.h"
#include "collect/processes/proc_text.h"

namespace stepscope::collect {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::string link_of(const std::string& path) {
  std::error_code failed;
  std::string out = fs::read_symlink(path, failed).string();
  return failed ? std::string() : out;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// A new file in the temporary folder that belongs to the process's user, so that it can read and remove it. Empty:
// failed.
std::string make_script(const std::string& proc_root, pid_t pid) {
  std::error_code failed;
  std::string path = (fs::temp_directory_path(failed) / "stepscope_attach_XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) return {};
  struct stat owner {};
  const bool given = stat((proc_root + "/" + std::to_string(pid)).c_str(), &owner) == 0 &&
                     (owner.st_uid == geteuid() || fchown(descriptor, owner.st_uid, owner.st_gid) == 0);
  close(descriptor);
  if (given) return path;
  unlink(path.c_str());
  return {};
}

// Keeps the file's name and owner. Python reads a script whole before it runs it.
bool replace_text(const std::string& path, std::string_view text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool whole = write_all(descriptor, text);
  close(descriptor);
  return whole;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Error not_run(const std::string& proc_root, pid_t pid, std::chrono::milliseconds patience) {
  return {ErrorKind::unsupported,
          "the main thread of process " + std::to_string(pid) + " did not come back to Python within " +
              std::to_string(patience.count()) + " ms: " + place_of_main_thread(proc_root, pid),
          {},
          {},
          "try again when it computes"};
}

}  // namespace

std::string interpreter_of(const std::string& proc_root, pid_t pid) {
  const std::string folder = proc_root + "/" + std::to_string(pid);
  std::string out = link_of(folder + "/exe");
  struct stat here {};
  struct stat there {};
  const bool same_file = stat(out.c_str(), &here) == 0 && stat((folder + "/exe").c_str(), &there) == 0 &&
                         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
  const std::string mounts = link_of(folder + "/ns/mnt");
  const bool same_files = !mounts.empty() && mounts == link_of(proc_root + "/self/ns/mnt");
  return same_file && same_files ? out : std::string();
}

std::optional<Result<Injection>> inject_by_remote_exec(const std::string& proc_root, pid_t pid, std::string_view source,
                                                       std::chrono::milliseconds patience) {
  const std::string python = interpreter_of(proc_root, pid);
  if (python.empty()) return std::nullopt;
  return inject_by_remote_exec_of(python, proc_root, pid, source, patience);
}

std::optional<Result<Injection>> inject_by_remote_exec_of(const std::string& python, const std::string& proc_root,
                                                          pid_t pid, std::string_view source,
                                                          std::chrono::milliseconds patience) {
  const auto begin = Clock::now();
  const auto born = start_of(proc_root, pid);
  const pid_t inside = pid_inside_of(proc_root, pid);
  const std::string script = make_script(proc_root, pid);
  if (script.empty()) return std::nullopt;
  const auto asked =
      replace_text(script, wrapped(source, inside, script))
          ? output_of({python, "-I", "-S", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])",
                       std::to_string(pid), script},
                      10)
          : Result<std::string>(fail({ErrorKind::unreadable, "the script could not be written", script, {}, ""}));
  if (!asked) {
    unlink(script.c_str());
    return std::nullopt;
  }
  for (auto nap = 1ms; exists(script) && Clock::now() - begin < patience; nap = std::min(nap * 2, 20ms)) {
    std::this_thread::sleep_for(nap);
  }
  if (start_of(proc_root, pid) != born) {
    unlink(script.c_str());
    return fail(
        {ErrorKind::not_found, "process " + std::to_string(pid) + " ended while it was being attached to", {}, {}, ""});
  }
  if (exists(script)) {  // taken back: what is left to run only removes the file
    replace_text(script, wrapped("", inside, script));
    return fail(not_run(proc_root, pid, patience));
  }
  Injection out;
  out.by_remote_exec = true;
  out.finished_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  return out;
}

}  // namespace stepscope::collect
