// What host calls and ranges are, by their names: every verdict that a name alone decides, once.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepscope {

// What a runtime or driver call starts on the device; none: nothing.
enum class LaunchKind : std::uint8_t { none, kernel, graph, copy, set };
std::string_view to_string(LaunchKind kind);
LaunchKind launch_kind(std::string_view call_name);
inline bool launches_work(std::string_view call_name) { return launch_kind(call_name) != LaunchKind::none; }
// Calls that return only when the device has done something: by name, or because they free or copy synchronously.
bool synchronizes(std::string_view call_name);
// Calls that take memory from a device, or pinned memory from the host, or give it back: they take long, and many of
// them wait for the device. Not those that do so in the order of a stream.
bool takes_memory(std::string_view call_name);
bool gives_memory_back(std::string_view call_name);  // those of them that do
// The range of a full collection of Python's garbage, which our hooks put among the operators while they record.
inline constexpr std::string_view kGarbageCollection = "Python garbage collection";
// The range in which the loop waits for its data loader.
bool is_data_loader(std::string_view range_name);
// Operators that communicate on the host ("gloo:all_reduce" …).
bool is_host_communication(std::string_view op_name);
// Operators that do nothing but read one number, and wait for it where a device has it.
bool reads_number(std::string_view op_name);

}  // namespace stepscope
