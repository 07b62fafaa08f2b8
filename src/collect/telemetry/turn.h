// Whose turn it is to sample a run on a host. Several tasks of a launch may run there, each under its own `stepscope
// run`: the one that holds the lock on telemetry/HOST.sampling samples for all of them, until it ends.
#pragma once

#include <string>

namespace stepscope::collect::telemetry {

class Turn {
 public:
  explicit Turn(const std::string& run_folder);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn();  // the next one's

  // Tries again, until it is. Where nothing can be locked it is everybody's: rather twice than not at all.
  bool is_ours();
  bool was_ours() const { return is_ours_; }  // when it was asked last

 private:
  std::string path_;
  int file_ = -1;
  bool is_ours_ = false;
};

}  // namespace stepscope::collect::telemetry
