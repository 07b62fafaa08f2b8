#include "derive/launch_names.h"

#include <algorithm>
#include <array>
#include <span>

namespace stepscope::derive {
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

bool any_prefix(std::span<const std::string_view> prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

}  // namespace

bool launches_work(std::string_view call_name) {
  return any_prefix(kPrefixes, call_name) && !any_prefix(kHarmless, call_name);
}

}  // namespace stepscope::derive
