#include "compat/hta/names.h"

#include <algorithm>
#include <array>

namespace stepscope::compat::hta {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_memory(std::string_view name) {
  constexpr std::array starts{"Memcpy", "hipMemcpy", "Memset", "hipMemset", "dma"};
  return std::any_of(starts.begin(), starts.end(), [&](const char* start) { return name.starts_with(start); });
}

bool is_computation(std::string_view name) {
  constexpr std::array parts{"Memcpy", "Memset", "dma", "Sync"};
  constexpr std::array starts{"nccl",        "Stream Wait Event",
                              "runFunction", "hip",
                              "job_exe",     "packet",
                              "pe_exe",      "cpum_exe_subgraph",
                              "hccl",        "collective_subgraph_execution"};
  if (name.starts_with("cuda") && contains(name.substr(4), "LaunchKernel")) return false;
  return std::none_of(parts.begin(), parts.end(), [&](const char* part) { return contains(name, part); }) &&
         std::none_of(starts.begin(), starts.end(), [&](const char* start) { return name.starts_with(start); });
}

// Drops all from the last `open` in `kept` on, as a closing bracket asks for; everything, where there is none.
void close(std::string& kept, char open) {
  const std::size_t at = kept.rfind(open);
  kept.resize(at == std::string::npos ? 0 : at);
}

}  // namespace

std::string_view to_string(KernelType type) {
  switch (type) {
    case KernelType::communication: return "COMMUNICATION";
    case KernelType::memory: return "MEMORY";
    case KernelType::computation: return "COMPUTATION";
    case KernelType::other: break;
  }
  return "OTHER";
}

KernelType kernel_type(std::string_view name) {
  if (name.starts_with("nccl") || name.starts_with("hip") || name.starts_with("hccl") || contains(name, "ncclKernel"))
    return KernelType::communication;
  if (is_memory(name)) return KernelType::memory;
  return is_computation(name) ? KernelType::computation : KernelType::other;
}

std::string_view memory_kind(std::string_view name) {
  if (name.starts_with("Memset")) return "Memset";
  if (!name.starts_with("Memcpy")) return "Memcpy Unknown";
  return name.substr(0, std::string_view("Memcpy DtoH").size());
}

std::string short_name(std::string_view name) {
  if (is_memory(name) || (!contains(name, "<") && !contains(name, "("))) return std::string(name);
  std::string kept;
  for (std::size_t i = 0; i < name.size(); i++) {
    if (name.substr(i, 2) == "->") {
      i++;
    } else if (name[i] == '>') {
      close(kept, '<');
    } else if (name[i] == ')') {
      close(kept, '(');
    } else {
      kept += name[i];
    }
  }
  const std::size_t space = kept.rfind(' ');
  return space == std::string::npos ? kept : kept.substr(space + 1);
}

bool is_queue_launch(std::string_view name) {
  constexpr std::array<std::string_view, 12> names{"cudaLaunchKernel",
                                                   "cudaLaunchKernelExC",
                                                   "cuLaunchKernel",
                                                   "cuLaunchKernelEx",
                                                   "cudaMemcpyAsync",
                                                   "cudaMemsetAsync",
                                                   "runFunction - job_prep_and_submit_for_execution",
                                                   "hipLaunchKernel",
                                                   "hipExtModuleLaunchKernel",
                                                   "hipMemsetAsync",
                                                   "hipMemcpyAsync",
                                                   "hipMemcpyWithStream"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace stepscope::compat::hta
