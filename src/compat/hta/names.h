// What HTA takes from a name: the class of a kernel, the kind of a copy, the short form. Its patterns are tried in this
// order and begin at the start of the name. They are known to be too simple (docs/hta.md); derive/class_rules.txt is
// what the ordinary answers use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::compat::hta {

enum class KernelType : std::uint8_t { communication, memory, computation, other };
std::string_view to_string(KernelType type);  // "COMMUNICATION" …

KernelType kernel_type(std::string_view name);
std::string_view memory_kind(std::string_view name);  // "Memcpy DtoH", "Memset" …
std::string short_name(std::string_view name);

// Calls after which a kernel, copy or fill is queued, as HTA lists them for queue lengths (graphs are not among them).
bool is_queue_launch(std::string_view name);

}  // namespace stepscope::compat::hta
