// What memory is used for. One list of names for allocations of traces, of memory snapshots and of memory timelines.
//
// A category is only given on evidence; what has none is unknown, and its share is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepscope {

enum class MemoryCategory : std::uint8_t {
  parameter,
  buffer,  // of a module, beside its parameters
  gradient,
  master_parameter,  // the optimizer's own copy of a parameter, in full precision
  optimizer_state,
  activation,     // kept for the backward pass
  temporary,      // gone by the end of the operator, or of the pass, that allocated it
  communication,  // buffers of collectives
  workspace,      // scratch memory of libraries: cuBLAS, cuDNN
  input,          // batches, from the data loader
  unknown,
};
inline constexpr std::size_t kMemoryCategories = 11;

std::string_view to_string(MemoryCategory category);    // "parameter", "optimizer state" …
MemoryCategory memory_category(std::string_view name);  // the other way; unknown: none has this name

}  // namespace stepscope
