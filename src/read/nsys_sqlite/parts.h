// The parts of the reader: each reads its tables into the traces. The order of the calls in nsys_sqlite.cc counts:
// device work first, because it says which processes are ranks and which device a context is on.
#pragma once

#include <map>
#include <utility>

#include "read/nsys_sqlite/traces.h"

namespace stepscope::read::nsys {

// (process, context) → device. Rows of waits name a device that need not be the one of their context.
using ContextDevices = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

// Kernels, copies, fills and graphs that were recorded as one block.
ContextDevices read_device_work(Export& file, Traces& traces);
void read_device_waits(Export& file, Traces& traces, const ContextDevices& devices);
void read_calls(Export& file, Traces& traces);     // CUDA runtime and driver, OS runtime, the profiler's own cost
void read_nvtx(Export& file, Traces& traces);      // ranges and marks of the program and of libraries
void read_counters(Export& file, Traces& traces);  // GPU and network metrics, device memory
void read_about(Export& file, Traces& traces);     // devices, names of processes and threads, the clock

}  // namespace stepscope::read::nsys
