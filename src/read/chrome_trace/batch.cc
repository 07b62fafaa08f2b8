#include "read/chrome_trace/batch.h"

namespace stepscope::read::chrome_trace {
namespace {

template <class... Columns>
void clear_all(Columns&... columns) {
  (columns.clear(), ...);
}

}  // namespace

void Batch::clear() {
  text_offset = events = 0;
  clear_all(start_ns, dur_ns, name, track, category, place);
  clear_all(ops.row, ops.external_id, ops.record_function_id, ops.sequence, ops.fwd_thread, ops.dims, ops.types,
            ops.concrete, ops.call_stack, ops.stream);
  clear_all(launches.row, launches.correlation, launches.external_id);
  clear_all(device.row, device.correlation, device.external_id, device.stream, device.bytes, device.wait_stream,
            device.wait_correlation, device.device, device.registers, device.shared_bytes, device.blocks_per_sm,
            device.warps_per_sm, device.occupancy_percent);
  for (auto& column : device.grid) column.clear();
  for (auto& column : device.block) column.clear();
  clear_all(copy_speeds.row, copy_speeds.gb_per_s);
  clear_all(collectives.row, collectives.kind, collectives.dtype, collectives.group_name, collectives.group_ranks,
            collectives.in_elements, collectives.out_elements, collectives.group_size, collectives.sequence,
            collectives.peer, collectives.in_split, collectives.out_split);
  clear_all(memory.time_ns, memory.bytes, memory.address, memory.total_allocated, memory.total_reserved, memory.track,
            memory.device_type, memory.device_index);
  clear_all(flows.time_ns, flows.id, flows.id_text, flows.track, flows.category, flows.phase);
  clear_all(instants.time_ns, instants.name, instants.track, instants.category, instants.place);
  clear_all(counters.time_ns, counters.name, counters.key, counters.track, counters.value);
  halves.clear();
  new_strings.clear();
  new_categories.clear();
  new_tracks.clear();
  new_metadata.clear();
  defects = {};
}

}  // namespace stepscope::read::chrome_trace
