#include "collect/telemetry/turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "run/living.h"

namespace stepscope::collect::telemetry {
namespace fs = std::filesystem;

Turn::Turn(const std::string& run_folder) {
  std::error_code ignored;
  const fs::path folder = fs::path(run_folder) / "telemetry";
  fs::create_directories(folder, ignored);
  path_ = (folder / (run::host_in_names() + ".sampling")).string();
}

Turn::~Turn() {
  if (file_ >= 0) close(file_);
}

bool Turn::is_ours() {
  if (is_ours_) return true;
  if (file_ < 0) file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const bool is_taken = file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR);
  is_ours_ = !is_taken;
  return is_ours_;
}

}  // namespace stepscope::collect::telemetry
