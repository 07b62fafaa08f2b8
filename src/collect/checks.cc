// What this machine allows, one check each: found, and the fix where it is not good.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/command_output.h"
#include "collect/collect.h"
#include "run/nsys.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

constexpr double kTorchSeconds = 60;  // a first import of torch from a network drive takes that long

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Check good(std::string name, std::string found) { return {std::move(name), Status::ok, std::move(found), "", false}; }

Check warning(std::string name, std::string found, std::string fix) {
  return {std::move(name), Status::warning, std::move(found), std::move(fix), false};
}

Check failure(std::string name, std::string found, std::string fix) {
  return {std::move(name), Status::failure, std::move(found), std::move(fix), false};
}

std::string python_of_this_shell() {
  const std::string active = environment("VIRTUAL_ENV");
  const std::string inside = active + "/bin/python";
  return !active.empty() && ::access(inside.c_str(), X_OK) == 0 ? inside : "python3";
}

Check check_python(const std::string& python) {
  const auto said = output_of(
      {python, "-c", "import sys; print(sys.version.split()[0], sys.executable, sys.version_info >= (3, 9))"}, 20);
  if (!said)
    return failure("python", python + " does not run", "Install Python 3.9 or newer, or name one with --python PATH");
  std::istringstream words(*said);
  std::string version, path, new_enough;
  words >> version >> path >> new_enough;
  if (new_enough != "True") return failure("python", version + " at " + path, "Use Python 3.9 or newer: --python PATH");
  return good("python", version + " at " + path);
}

// A torch of this Python, and whether it sees a GPU.
std::vector<Check> check_torch(const std::string& python) {
  static const char* program =
      "import torch; v = torch.version; ok = tuple(int(x) for x in torch.__version__.split('.')[:2]) >= (2, 1);"
      "print(torch.__version__, ok, v.cuda or getattr(v, 'hip', None) or 'none', torch.cuda.device_count());"
      "print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')";
  const auto said = output_of({python, "-c", program}, kTorchSeconds);
  if (!said) {
    return {failure("torch", python + " cannot import torch", "Install it there: " + python + " -m pip install torch")};
  }
  std::istringstream words(*said);
  std::string version, supported, runtime, name;
  int devices = 0;
  words >> version >> supported >> runtime >> devices;
  std::getline(words >> std::ws, name);
  std::vector<Check> out;
  out.push_back(supported == "True" ? good("torch", version) : failure("torch", version, "Install torch 2.1 or newer"));
  if (devices > 0 && !name.empty()) {
    out.push_back(good("torch on the GPU", std::to_string(devices) + " × " + name));
  } else if (runtime == "none") {
    out.push_back(warning("torch on the GPU", "this torch is built for the CPU: jobs are recorded there",
                          "Install a GPU build of torch where a GPU is to be used"));
  } else {
    out.push_back(warning("torch on the GPU", "torch is built for " + runtime + " but sees no GPU",
                          "Check the driver (nvidia-smi) and CUDA_VISIBLE_DEVICES"));
  }
  return out;
}

Check check_hooks() {
  const auto hooks = find_hooks();
  return hooks ? good("hooks", *hooks) : failure("hooks", hooks.error().message, hooks.error().hint);
}

// Tries to make a file, in the folder itself or in the nearest one above that exists.
Check check_writable(const std::string& name, const std::string& folder, Status when_not, const std::string& fix) {
  std::error_code code;
  fs::path at = fs::absolute(folder, code);
  while (!code && !fs::exists(at, code) && at.has_relative_path()) at = at.parent_path();
  if (fs::is_directory(at, code) && ::access(at.c_str(), W_OK | X_OK) == 0) {
    const auto space = fs::space(at, code);
    const std::string left = code ? "" : ", " + std::to_string(space.available >> 20) + " MiB free";
    if (!code && space.available < (std::uintmax_t{200} << 20))
      return warning(name, folder + left, "Free some space there");
    return good(name, folder + left);
  }
  return {name, when_not, folder + " cannot be written", fix, false};
}

Check check_driver() {
  for (const char* library : {"libcuda.so.1", "libamdhip64.so"}) {
    void* const handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) continue;
    ::dlclose(handle);
    if (const auto said = output_of({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"}, 20)) {
      std::istringstream lines(*said);
      std::string first, rest;
      std::getline(lines, first);
      int more = 0;
      while (std::getline(lines, rest)) ++more;
      return good("GPU driver", first + (more > 0 ? " and " + std::to_string(more) + " more" : ""));
    }
    return good("GPU driver", std::string(library) + " loads (nvidia-smi says nothing)");
  }
  return warning("GPU driver", "none: neither libcuda.so.1 nor libamdhip64.so loads",
                 "Install the driver if this machine has a GPU");
}

Check check_nsys() {
  const auto program = run::find_nsys();
  return good("nsys", program ? *program : "not installed (only stepscope run --nsys needs it)");
}

Check check_ptrace() {
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") return good("ptrace", scope.empty() ? "not restricted" : "ptrace_scope 0");
  return warning("ptrace",
                 "ptrace_scope " + scope + ": attaching to a running job is restricted (stepscope run is not)",
                 "Set it with: sudo sysctl kernel.yama.ptrace_scope=0");
}

Check check_perf_events() {
  const std::string level = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (level.empty())
    return warning("perf events", "this kernel offers none", "Nothing to do: only hardware counters are missing");
  int paranoid = 0;
  std::from_chars(level.data(), level.data() + level.size(), paranoid);
  if (paranoid <= 2) return good("perf events", "perf_event_paranoid " + level);
  return warning("perf events", "perf_event_paranoid " + level + ": no hardware counters (stepscope run needs none)",
                 "Set it with: sudo sysctl kernel.perf_event_paranoid=2");
}

std::string cache_folder() {
  std::string named = environment("STEPSCOPE_CACHE");
  if (!named.empty()) return named;
  const std::string base = environment("XDG_CACHE_HOME");
  return (base.empty() ? environment("HOME") + "/.cache" : base) + "/stepscope";
}

Check check_cache() {
  const std::string folder = cache_folder();
  if (folder == "off") return good("cache", "switched off by STEPSCOPE_CACHE");
  return check_writable("cache", folder, Status::warning, "Name another folder with STEPSCOPE_CACHE=DIR, or off");
}

// Cores and memory, with the control group's limits where they are tighter.
Check check_resources() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  std::string found = std::to_string(cores) + " cores";
  std::istringstream quota(first_line("/sys/fs/cgroup/cpu.max"));
  double used = 0, period = 0;
  if (quota >> used >> period && period > 0) {
    char text[48];
    std::snprintf(text, sizeof text, " (limited to %.1f by the control group)", used / period);
    found += text;
  }
  const auto pages = static_cast<std::uintmax_t>(sysconf(_SC_PHYS_PAGES));
  found += ", " + std::to_string(pages * static_cast<std::uintmax_t>(sysconf(_SC_PAGESIZE)) >> 20) + " MiB of memory";
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit != "max")
    found += " (limited to " + std::to_string(std::strtoull(limit.c_str(), nullptr, 10) >> 20) + " MiB)";
  return good("resources", found);
}

}  // namespace

std::vector<Check> check_machine(const std::string& python, const std::string& out_folder) {
  const std::string interpreter = python.empty() ? python_of_this_shell() : python;
  std::vector<Check> checks{check_python(interpreter)};
  if (checks.front().status == Status::ok) {
    for (Check& check : check_torch(interpreter)) checks.push_back(std::move(check));
  }
  checks.push_back(check_hooks());
  checks.push_back(check_writable("run folder", out_folder, Status::failure,
                                  "Choose another folder with --out DIR or STEPSCOPE_OUT"));
  checks.push_back(check_driver());
  checks.push_back(check_nsys());
  checks.push_back(check_ptrace());
  checks.push_back(check_perf_events());
  checks.push_back(check_cache());
  checks.push_back(check_resources());
  for (Check& check : checks) {
    static constexpr std::array kNeeded{"python", "torch", "hooks", "run folder"};
    check.needed = std::find(kNeeded.begin(), kNeeded.end(), check.name) != kNeeded.end();
  }
  return checks;
}

}  // namespace stepscope::collect
