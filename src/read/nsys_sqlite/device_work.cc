// Kernels, copies, fills and graphs. Copies and fills are named as Kineto names them, so that one rule fits both.
#include <algorithm>

#include "read/nsys_sqlite/parts.h"

namespace stepscope::read::nsys {
namespace {

using Names = std::map<std::int64_t, std::string>;

// "CUDA_MEMCPY_KIND_UVM_HTOD" → "HtoD" and whether it moves unified memory.
struct CopyKind {
  std::string direction = "Unknown";
  bool unified = false;
};

CopyKind copy_kind(std::string_view name) {
  const std::size_t at = name.find("KIND_");
  if (at == std::string_view::npos) return {};
  std::string_view rest = name.substr(at + 5);
  CopyKind out;
  if (rest.starts_with("UVM_")) {
    out.unified = true;
    rest.remove_prefix(4);
  }
  if (rest.size() != 4 || rest.substr(1, 2) != "TO") return out;
  out.direction = std::string{rest[0], 't', 'o', rest[3]};
  return out;
}

// The ids are CUPTI's and old; an export that brings its own list is believed instead.
Names copy_kinds(const Export& file) {
  Names listed = file.names("ENUM_CUDA_MEMCPY_OPER", "name");
  if (!listed.empty()) return listed;
  static constexpr std::array kinds{"UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH",     "ATOA",     "ATOD",
                                    "DTOA",    "DTOD", "HTOH", "PTOP", "UVM_HTOD", "UVM_DTOH", "UVM_DTOD"};
  for (std::size_t i = 0; i < kinds.size(); i++) {
    listed[static_cast<std::int64_t>(i)] = std::string("CUDA_MEMCPY_KIND_") + kinds[i];
  }
  return listed;
}

Names memory_kinds(const Export& file) {
  Names listed = file.names("ENUM_CUDA_MEM_KIND", "label");
  if (!listed.empty()) return listed;
  return {{0, "Pageable"}, {1, "Pinned"}, {2, "Device"}, {3, "Array"}, {4, "Managed"}};
}

std::string_view name_in(const Names& names, std::int64_t id) {
  const auto found = names.find(id);
  return found == names.end() ? std::string_view() : found->second;
}

std::string copy_name(const CopyKind& kind, std::string_view from, std::string_view to) {
  std::string name = "Memcpy " + kind.direction;
  if (kind.unified) return name + " (Unified)";
  if (!from.empty() && !to.empty()) name += " (" + std::string(from) + " -> " + std::string(to) + ")";
  return name;
}

void remember(ContextDevices& devices, std::int64_t global_pid, std::int64_t context, std::int64_t device) {
  if (context != kAbsent && device >= 0) devices[{process_of(global_pid), context}] = device;
}

void read_kernels(Export& file, Traces& traces, ContextDevices& devices) {
  enum {
    start,
    end,
    pid,
    device,
    context,
    stream,
    correlation,
    demangled,
    short_name,
    mangled,
    registers,
    grid_x,
    grid_y,
    grid_z,
    block_x,
    block_y,
    block_z,
    static_shared,
    dynamic_shared
  };
  Scan row(file, name_of(Table::kernel),
           {"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "demangledName",
            "shortName", "mangledName", "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
            "staticSharedMemory", "dynamicSharedMemory"},
           2);
  while (row.next()) {
    TraceBuilder& out = traces.with_device_work(row[pid]);
    StringId name = out.string(row[demangled]);
    if (name == StringId::none) name = out.string(row[short_name]);
    if (name == StringId::none) name = out.string(row[mangled]);
    const SliceId slice = out.add_slice(Table::kernel, row.id(), row[start], row[end], name,
                                        out.stream(row[device], row[stream]), out.category("kernel"));
    if (slice == SliceId::none) continue;
    remember(devices, row[pid], row[context], row[device]);
    DeviceRow about{
        .correlation = row[correlation], .device = row[device], .stream = row[stream], .registers = row[registers]};
    for (int axis = 0; axis < 3; axis++) {
      about.grid[axis] = row[grid_x + axis];
      about.block[axis] = row[block_x + axis];
    }
    // Each alone is at most some hundred KiB; a wild number must not overflow the sum.
    constexpr std::int64_t kMost = 1 << 30;
    if (row[static_shared] >= 0 && row[static_shared] < kMost && row[dynamic_shared] >= 0 &&
        row[dynamic_shared] < kMost) {
      about.shared_bytes = row[static_shared] + row[dynamic_shared];
    }
    out.add_device_row(slice, about);
  }
}

void read_copies(Export& file, Traces& traces, ContextDevices& devices) {
  const Names kinds = copy_kinds(file), memory = memory_kinds(file);
  enum { start, end, pid, device, context, stream, correlation, bytes, kind, from, to };
  Scan row(file, name_of(Table::memcpy),
           {"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "bytes", "copyKind",
            "srcKind", "dstKind"},
           2);
  while (row.next()) {
    TraceBuilder& out = traces.with_device_work(row[pid]);
    const StringId name =
        out.text(copy_name(copy_kind(name_in(kinds, row[kind])), name_in(memory, row[from]), name_in(memory, row[to])));
    const SliceId slice = out.add_slice(Table::memcpy, row.id(), row[start], row[end], name,
                                        out.stream(row[device], row[stream]), out.category("gpu_memcpy"));
    if (slice == SliceId::none) continue;
    remember(devices, row[pid], row[context], row[device]);
    out.add_device_row(
        slice, {.correlation = row[correlation], .device = row[device], .stream = row[stream], .bytes = row[bytes]});
  }
}

void read_fills(Export& file, Traces& traces, ContextDevices& devices) {
  const Names memory = memory_kinds(file);
  enum { start, end, pid, device, context, stream, correlation, bytes, kind };
  Scan row(file, name_of(Table::memset),
           {"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "bytes", "memKind"}, 2);
  while (row.next()) {
    TraceBuilder& out = traces.with_device_work(row[pid]);
    const std::string_view where = name_in(memory, row[kind]);
    const StringId name = out.text(where.empty() ? "Memset" : "Memset (" + std::string(where) + ")");
    const SliceId slice = out.add_slice(Table::memset, row.id(), row[start], row[end], name,
                                        out.stream(row[device], row[stream]), out.category("gpu_memset"));
    if (slice == SliceId::none) continue;
    remember(devices, row[pid], row[context], row[device]);
    out.add_device_row(
        slice, {.correlation = row[correlation], .device = row[device], .stream = row[stream], .bytes = row[bytes]});
  }
}

// With --cuda-graph-trace=graph, the default, nsys records a launched graph as one block and none of its kernels.
void read_graphs(Export& file, Traces& traces, ContextDevices& devices) {
  enum { start, end, pid, device, context, stream, correlation, graph };
  Scan row(file, name_of(Table::graph),
           {"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "graphId"}, 2);
  while (row.next()) {
    TraceBuilder& out = traces.with_device_work(row[pid]);
    const StringId name = out.text(row[graph] == kAbsent ? "CUDA graph" : "CUDA graph " + std::to_string(row[graph]));
    const SliceId slice =
        out.add_slice(Table::graph, row.id(), row[start], row[end], name, out.stream(row[device], row[stream]),
                      out.category("cuda_graph", SliceKind::kernel));
    if (slice == SliceId::none) continue;
    remember(devices, row[pid], row[context], row[device]);
    out.add_device_row(slice, {.correlation = row[correlation], .device = row[device], .stream = row[stream]});
    out.note("graph_as_one_block", Severity::info,
             "CUDA graphs were recorded as one block each: which of their kernels ran when is not known",
             "Record with nsys profile --cuda-graph-trace=node");
  }
}

}  // namespace

ContextDevices read_device_work(Export& file, Traces& traces) {
  ContextDevices devices;
  read_kernels(file, traces, devices);
  read_copies(file, traces, devices);
  read_fills(file, traces, devices);
  read_graphs(file, traces, devices);
  traces.settle();
  return devices;
}

}  // namespace stepscope::read::nsys
