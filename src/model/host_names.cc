#include "model/host_names.h"

#include <algorithm>
#include <array>
#include <span>

namespace stepscope {
namespace {

// Prefixes, because the rest of a name is a variant: Async, _v2, _ptsz, ExC, 2D, Peer …
constexpr std::array<std::string_view, 37> kPrefixes{
    // CUDA runtime and driver
    "cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "cudaMemcpy", "cudaMemset", "cudaMemPrefetch",
    "cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchGrid", "cuGraphLaunch", "cuMemcpy", "cuMemset",
    "cuMemPrefetch",
    // HIP
    "hipLaunch", "hipExtLaunch", "hipModuleLaunch", "hipExtModuleLaunch", "hipGraphLaunch", "hipMemcpy", "hipMemset",
    "hipHccModuleLaunch",
    // MTIA
    "runFunction", "enqueueCommand memcpy", "enqueueCommand memset", "enqueueCommand run",
    // Level Zero, Unified Runtime, SYCL plugin interface
    "urEnqueueKernelLaunch", "urEnqueueUSM", "urEnqueueMem", "urEnqueueCooperativeKernelLaunch",
    "zeCommandListAppendLaunch", "zeCommandListAppendMemory", "piEnqueueKernelLaunch", "piextUSMEnqueue",
    "piEnqueueMem",
    // Ascend and other private-use back ends
    "aclrtLaunchKernel", "aclrtMemcpy", "aclrtMemset"};

// Same beginning, but nothing runs.
constexpr std::array<std::string_view, 1> kHarmless{"hipLaunchHostFunc"};

constexpr std::array<std::string_view, 8> kSynchronous{"cudaMemcpy",          "cudaMemcpy2D",   "hipMemcpy",
                                                       "hipMemcpyWithStream", "cudaFree",       "hipFree",
                                                       "cuMemcpyDtoH_v2",     "cuMemcpyHtoD_v2"};

// Prefixes: Managed, Host, Pitch, _v2 … come behind them.
constexpr std::array<std::string_view, 17> kTakesMemory{
    "cudaMalloc",   "cudaFree",    "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister", "cuMemAlloc",
    "cuMemFree",    "cuMemCreate", "cuMemRelease",  "cuMemMap",         "cuMemUnmap",         "cuMemSetAccess",
    "cuMemAddress", "hipMalloc",   "hipFree",       "hipHostMalloc",    "hipHostFree"};

constexpr std::array<std::string_view, 3> kHostCommunication{"gloo:", "mpi:", "ucc:"};

bool any_prefix(std::span<const std::string_view> prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

bool contains(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

}  // namespace

std::string_view to_string(LaunchKind kind) {
  constexpr std::array<std::string_view, 5> kNames{"none", "kernel", "graph", "copy", "set"};
  return kNames[static_cast<std::size_t>(kind)];
}

LaunchKind launch_kind(std::string_view call_name) {
  if (!any_prefix(kPrefixes, call_name) || any_prefix(kHarmless, call_name)) return LaunchKind::none;
  if (contains(call_name, "GraphLaunch")) return LaunchKind::graph;
  for (const std::string_view part : {"Memset", "memset", "Fill"}) {
    if (contains(call_name, part)) return LaunchKind::set;
  }
  for (const std::string_view part : {"Memcpy", "memcpy", "Copy", "MemPrefetch"}) {
    if (contains(call_name, part)) return LaunchKind::copy;
  }
  return LaunchKind::kernel;
}

bool synchronizes(std::string_view call_name) {
  return call_name.find("Synchronize") != std::string_view::npos ||
         std::find(kSynchronous.begin(), kSynchronous.end(), call_name) != kSynchronous.end();
}

bool takes_memory(std::string_view call_name) {
  return any_prefix(kTakesMemory, call_name) && !contains(call_name, "Async");
}

bool gives_memory_back(std::string_view call_name) { return takes_memory(call_name) && contains(call_name, "Free"); }

bool is_data_loader(std::string_view range_name) {
  return range_name.starts_with("enumerate(DataLoader") || range_name.starts_with("enumerate(DataPipe");
}

bool is_host_communication(std::string_view op_name) { return any_prefix(kHostCommunication, op_name); }

bool reads_number(std::string_view op_name) {
  return op_name == "aten::item" || op_name == "aten::_local_scalar_dense" || op_name == "aten::is_nonzero";
}

}  // namespace stepscope
