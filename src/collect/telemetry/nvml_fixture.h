// For the tests of what reads NVIDIA GPUs: a stand-in for the driver's library (tests/stand_in_nvml.cc), and its
// answers.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

class StandInNvml {
 public:
  explicit StandInNvml(const std::string& name = "stand_in_nvml")
      : path_((std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("lib" + name + ".so")).string()),
        library_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE_MESSAGE(library_ != nullptr, path_);
    clear();
  }
  ~StandInNvml() { clear(); }
  StandInNvml(const StandInNvml&) = delete;
  StandInNvml& operator=(const StandInNvml&) = delete;

  // "utilization.0" of GPU 0, "energy.0.error" …
  void set(const std::string& key, long long value) {
    function<void(const char*, long long)>("stand_in_set")(key.c_str(), value);
  }
  void unset(const std::string& key) { function<void(const char*)>("stand_in_unset")(key.c_str()); }
  long long get(const std::string& key) { return function<long long(const char*)>("stand_in_get")(key.c_str()); }

  const std::string& path() const { return path_; }

 private:
  template <class Signature>
  Signature* function(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  void clear() { function<void()>("stand_in_clear")(); }

  std::string path_;
  void* library_;
};

// Roots with this library, a tree of files, and a clock that a test moves.
struct NvmlRoots {
  std::int64_t now_ns = 1'000'000'000;
  Roots roots;

  NvmlRoots(const StandInNvml& library, const std::filesystem::path& folder)
      : roots{(folder / "proc").string(), (folder / "sys").string()} {
    roots.nvml = library.path();
    roots.now_ns = [this] { return now_ns; };
  }
};

}  // namespace stepscope::collect::telemetry
