// What a change is about: the nodes of a graph that a text such as "kernel:gemm" selects.
//
//   kernel:TEXT   device work whose name, family or rule has TEXT (families whatever their case: "gemm")
//   op:TEXT       operators and ranges of that name, with all that runs in them and the device work they launch
//   host:TEXT     the same on the host alone: its launches stay
//   module:PATH   modules of that path or class with all that they call, and their backward pass
//   phase:NAME    a phase, on the host and on the device
//   rank:N        all that rank N does
//   host:*        all threads, kernel:*  all device work
//
// TEXT is a pattern of base/name_pattern.h. Where a name is exactly TEXT, only that name is meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulate/replay_graph.h"

namespace stepscope::simulate {

struct Selection {
  std::vector<std::uint8_t> nodes;          // per node: 1 where it is selected
  std::vector<std::int64_t> call_ns;        // per selected node: how long the call that it belongs to lasted; else 0
  std::uint64_t calls = 0;                  // outermost calls on the host, or pieces of device work
  std::int64_t host_ns = 0, device_ns = 0;  // their time
  std::vector<std::string> names;           // distinct, in order of first use
};

// A usage error for an unknown kind of target; nothing selected is no error here.
Result<Selection> select(const Run& run, const ReplayGraph& graph, std::string_view target);

}  // namespace stepscope::simulate
