#include "collect/telemetry/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace stepscope::collect::telemetry::nvml {
namespace {

bool is_missing(const std::string& path, const std::string& why) {
  return why.find(path + ": cannot open shared object file: No such file") != std::string::npos;
}

Error not_loaded(const std::string& path) {
  const char* const text = dlerror();
  const std::string why = text != nullptr ? text : "no reason was given";
  if (is_missing(path, why)) {
    return {ErrorKind::unsupported, "the NVIDIA driver's library " + path + " is not on this machine", "", std::nullopt,
            "Install the NVIDIA driver; in a container, start it with the GPUs (docker run --gpus all)"};
  }
  return {ErrorKind::unsupported, "the NVIDIA driver's library cannot be loaded: " + why, "", std::nullopt,
          "Install the library of the running driver again"};
}

Error not_initialized(const Functions& call, Return result) {
  const auto unsupported = [](std::string message, std::string hint) {
    return Error{ErrorKind::unsupported, std::move(message), "", std::nullopt, std::move(hint)};
  };
  switch (result) {
    case kDriverNotLoaded: return unsupported("the NVIDIA driver is not loaded", "Load it as root: modprobe nvidia");
    case kVersionMismatch:
      return unsupported("the NVIDIA driver and its library are of different versions",
                         "Restart the machine, or reload the driver, as an update left the old one running");
    case kNoPermission:
    case kOperatingSystem:
      return unsupported("this user may not use the NVIDIA GPUs",
                         "Allow reading and writing /dev/nvidiactl and /dev/nvidia0 …; in a container, start it with "
                         "the GPUs (docker run --gpus all)");
    case kGpuNotFound: return unsupported("the NVIDIA driver sees no GPU", "Check with nvidia-smi -L, and with lspci");
    default: break;
  }
  const char* const text = call.error_text != nullptr ? call.error_text(result) : nullptr;
  return unsupported(
      "the NVIDIA driver does not answer: " + (text != nullptr ? std::string(text) : "error " + std::to_string(result)),
      "Check with nvidia-smi, and look for NVRM in the kernel's log (dmesg)");
}

}  // namespace

Result<std::shared_ptr<Library>> Library::open(const std::string& path) {
  // Never closed again: drivers keep threads and exit handlers of their own.
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return fail(not_loaded(path));
  std::shared_ptr<Library> library(new Library);
  Functions& f = library->functions_;
  // The names are those of the manual, the newest version first.
  const auto take = [&](auto& target, std::initializer_list<const char*> names) {
    void* found = nullptr;
    for (const char* name : names) {
      if (found == nullptr) found = dlsym(loaded, name);
    }
    target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(found);
  };
  take(f.error_text, {"nvmlErrorString"});
  take(f.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  take(f.device, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  take(f.name, {"nvmlDeviceGetName"});
  take(f.uuid, {"nvmlDeviceGetUUID"});
  take(f.utilization, {"nvmlDeviceGetUtilizationRates"});
  take(f.memory, {"nvmlDeviceGetMemoryInfo"});
  take(f.memory2, {"nvmlDeviceGetMemoryInfo_v2"});
  take(f.power, {"nvmlDeviceGetPowerUsage"});
  take(f.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  take(f.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  take(f.clock, {"nvmlDeviceGetClockInfo"});
  take(f.temperature, {"nvmlDeviceGetTemperature"});
  take(f.temperature_of, {"nvmlDeviceGetTemperatureV"});
  take(f.reasons, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  take(f.ecc, {"nvmlDeviceGetTotalEccErrors"});
  take(f.replays, {"nvmlDeviceGetPcieReplayCounter"});
  take(f.fields, {"nvmlDeviceGetFieldValues"});
  take(f.most_mig, {"nvmlDeviceGetMaxMigDeviceCount"});
  take(f.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  take(f.processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
                     "nvmlDeviceGetComputeRunningProcesses"});
  take(f.gpm_alloc, {"nvmlGpmSampleAlloc"});
  take(f.gpm_free, {"nvmlGpmSampleFree"});
  take(f.gpm_get, {"nvmlGpmSampleGet"});
  take(f.gpm_metrics, {"nvmlGpmMetricsGet"});
  take(f.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  take(f.shutdown, {"nvmlShutdown"});
  take(f.init, {"nvmlInit_v2", "nvmlInit"});
  const auto init = std::exchange(f.init, nullptr);
  if (init == nullptr || f.count == nullptr || f.device == nullptr) {
    return fail({ErrorKind::unsupported, path + " is no library of an NVIDIA driver", "", std::nullopt,
                 "Install the NVIDIA driver's own library again"});
  }
  if (const Return result = init(); result != kSuccess) return fail(not_initialized(f, result));
  f.init = init;  // to be shut down
  return library;
}

Library::~Library() {
  if (functions_.init != nullptr && functions_.shutdown != nullptr) functions_.shutdown();
}

Result<std::vector<Gpu>> Library::gpus() const {
  unsigned count = 0;
  if (const Return result = functions_.count(&count); result != kSuccess)
    return fail(not_initialized(functions_, result));
  std::vector<Gpu> all;
  Return worst = kGpuNotFound;
  for (unsigned i = 0; i < std::min(count, 1024U); i++) {
    Gpu gpu;
    if (const Return result = functions_.device(i, &gpu.device); result != kSuccess) {
      worst = result;
      continue;
    }
    gpu.index = i;
    gpu.target = "gpu " + std::to_string(i);
    std::array<char, 256> text{};
    if (functions_.name != nullptr && functions_.name(gpu.device, text.data(), text.size() - 1) == kSuccess) {
      gpu.model = text.data();
    }
    text = {};
    if (functions_.uuid != nullptr && functions_.uuid(gpu.device, text.data(), text.size() - 1) == kSuccess) {
      gpu.model += std::string(gpu.model.empty() ? "" : ", ") + text.data();
    }
    all.push_back(std::move(gpu));
  }
  if (all.empty()) return fail(not_initialized(functions_, worst));
  return all;
}

std::vector<Gpu> Library::mig_instances(const Gpu& gpu) const {
  std::vector<Gpu> all;
  unsigned most = 0;
  if (functions_.most_mig == nullptr || functions_.mig_device == nullptr) return all;
  if (functions_.most_mig(gpu.device, &most) != kSuccess) return all;
  for (unsigned i = 0; i < std::min(most, 64U); i++) {
    Gpu one;
    if (functions_.mig_device(gpu.device, i, &one.device) != kSuccess) continue;
    one.target = gpu.target + " mig " + std::to_string(i);
    std::array<char, 256> text{};
    if (functions_.uuid != nullptr && functions_.uuid(one.device, text.data(), text.size() - 1) == kSuccess) {
      one.model = text.data();
    }
    all.push_back(std::move(one));
  }
  return all;
}

// The entries have 16 bytes in the first version, 24 in the second and third, and 32 in the third of the first drivers
// 535 (XuehaiPan/nvitop, pull request 79, tells which). All begin with the PID, and the bytes at offset 8. So how far
// the driver wrote into a buffer that was filled before says how long an entry is.
bool Library::processes_on(Device device, std::vector<Process>& into, Return& result) const {
  constexpr unsigned char kUntouched = 0xA5;
  constexpr std::size_t kLongest = 32;
  into.clear();
  result = kNotSupported;
  if (functions_.processes == nullptr) return false;
  unsigned room = static_cast<unsigned>(std::max<std::size_t>(64, buffer_.size() / kLongest));
  for (int tries = 0; tries < 3; tries++) {
    buffer_.assign(room * kLongest, kUntouched);
    unsigned count = room;
    result = functions_.processes(device, &count, buffer_.data());
    if (result == kInsufficientSize && count < (1U << 16)) {
      room = std::max(room, count) + 16;  // others may start meanwhile
      continue;
    }
    if (result != kSuccess || count > room) return false;
    if (count == 0) return true;
    const auto end =
        std::find_if(buffer_.rbegin(), buffer_.rend(), [](unsigned char byte) { return byte != kUntouched; });
    const auto written = static_cast<std::size_t>(buffer_.rend() - end);
    const std::size_t stride = written / count;
    if (written % count != 0 || (stride != 16 && stride != 24 && stride != kLongest)) return false;
    for (std::size_t i = 0; i < count; i++) {
      Process one{};
      std::memcpy(&one.pid, &buffer_[i * stride], sizeof one.pid);
      std::memcpy(&one.bytes, &buffer_[i * stride + 8], sizeof one.bytes);
      if (one.bytes != ULLONG_MAX) into.push_back(one);  // all ones: not available
    }
    return true;
  }
  return false;
}

}  // namespace stepscope::collect::telemetry::nvml
