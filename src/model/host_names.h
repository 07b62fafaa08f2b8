// What host calls and ranges are, by their names: every verdict that a name alone decides, once.
#pragma once

#include <string_view>

namespace stepscope {

// Runtime and driver calls that start device work: kernels, graphs, copies, fills.
bool launches_work(std::string_view call_name);
// Calls that return only when the device has done something: by name, or because they free or copy synchronously.
bool synchronizes(std::string_view call_name);
// The range in which the loop waits for its data loader.
bool is_data_loader(std::string_view range_name);
// Operators that communicate on the host ("gloo:all_reduce" …).
bool is_host_communication(std::string_view op_name);

}  // namespace stepscope
