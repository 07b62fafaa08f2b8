// Cost: wall and CPU seconds since it was made, and the peak memory of this process.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace stepscope::bench {

class Cost {
 public:
  double wall_s() const { return now() - wall_; }
  double cpu_s() const { return used() - cpu_; }

  // From /proc: getrusage's ru_maxrss begins with the peak of the process that started this one.
  static double peak_mb() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
    }
    return -1;
  }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static double used() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }

  double wall_ = now(), cpu_ = used();
};

}  // namespace stepscope::bench
