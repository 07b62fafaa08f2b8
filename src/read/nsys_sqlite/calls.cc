// Calls on host threads: the CUDA runtime and driver, the operating system's library, and what the profiler cost.
#include "read/nsys_sqlite/parts.h"

namespace stepscope::read::nsys {
namespace {

constexpr std::int64_t kDriverClass = 1;  // of ENUM_NSYS_EVENT_CLASS

// "cudaLaunchKernel_v7000" → "cudaLaunchKernel": nsys appends the version of the interface. A short "_v2" is part of
// the driver's own names.
std::string_view without_version(std::string_view call) {
  const std::size_t at = call.rfind("_v");
  if (at == std::string_view::npos || call.size() - at < 6) return call;
  const std::string_view digits = call.substr(at + 2);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? call.substr(0, at) : call;
}

void read_cuda_calls(Export& file, Traces& traces) {
  enum { start, end, tid, correlation, name, event_class };
  Scan row(file, name_of(Table::runtime), {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"}, 2);
  while (row.next()) {
    TraceBuilder& out = traces.of(row[tid]);
    const StringId call = out.text(without_version(file.string(row[name])));
    const SliceId slice =
        out.add_slice(Table::runtime, row.id(), row[start], row[end], call, out.thread(row[tid]),
                      out.category(row[event_class] == kDriverClass ? "cuda_driver" : "cuda_runtime"));
    // Correlation ids count per process: those of another one would meet the wrong kernels.
    if (slice == SliceId::none || row[correlation] == kAbsent || !out.owns(row[tid])) continue;
    out.add_launch(slice, row[correlation]);
  }
}

void read_plain_calls(Export& file, Traces& traces, Table table, std::string_view category, SliceKind kind) {
  enum { start, end, tid, name };
  Scan row(file, name_of(table), {"start", "end", "globalTid", "nameId"}, 2);
  while (row.next()) {
    TraceBuilder& out = traces.of(row[tid]);
    out.add_slice(table, row.id(), row[start], row[end], out.string(row[name]), out.thread(row[tid]),
                  out.category(category, kind));
  }
}

}  // namespace

void read_calls(Export& file, Traces& traces) {
  read_cuda_calls(file, traces);
  read_plain_calls(file, traces, Table::graph_node, "cuda_graph_node", SliceKind::other);
  read_plain_calls(file, traces, Table::os_runtime, "os_runtime", SliceKind::other);
  read_plain_calls(file, traces, Table::overhead, "overhead", SliceKind::overhead);
  read_plain_calls(file, traces, Table::profiler_overhead, "overhead", SliceKind::overhead);
}

}  // namespace stepscope::read::nsys
