// The columns of the detail tables and the members of the small parts of a Trace by name, for formats that write them
// as named values. What writes a format and what reads it back walk the same list, so they cannot disagree.
//
// each_field(part, visit) calls visit(name, member), or visit(name, member, limit): for columns of plain integers the
// value that means "not given", for enumerations the last one. The names are those of `stepscope schema`.
#pragma once

#include "model/trace_members.h"

namespace stepscope {

template <class V>
void each_field(MaybeConst<Ops> auto& t, V&& visit) {
  visit("external_id", t.external_id);
  visit("record_function_id", t.record_function_id);
  visit("sequence", t.sequence);
  visit("fwd_thread", t.fwd_thread);
  visit("input_dims", t.input_dims);
  visit("input_types", t.input_types);
  visit("concrete_inputs", t.concrete_inputs);
  visit("call_stack", t.call_stack);
  visit("stream", t.stream);
}

template <class V>
void each_field(MaybeConst<Launches> auto& t, V&& visit) {
  visit("correlation", t.correlation);
  visit("external_id", t.external_id);
}

template <class V>
void each_field(MaybeConst<DeviceRows> auto& t, V&& visit) {
  visit("device", t.device, -1);
  visit("stream", t.stream);
  visit("correlation", t.correlation);
  visit("external_id", t.external_id);
  visit("grid_x", t.grid[0], 0);
  visit("grid_y", t.grid[1], 0);
  visit("grid_z", t.grid[2], 0);
  visit("block_x", t.block[0], 0);
  visit("block_y", t.block[1], 0);
  visit("block_z", t.block[2], 0);
  visit("registers", t.registers, DeviceRows::kNoCount);
  visit("shared_bytes", t.shared_bytes, DeviceRows::kNoCount);
  visit("blocks_per_sm", t.blocks_per_sm);
  visit("warps_per_sm", t.warps_per_sm);
  visit("occupancy_percent", t.occupancy_percent);
  visit("bytes", t.bytes);
  visit("wait_stream", t.wait_stream);
  visit("wait_correlation", t.wait_correlation);
}

template <class V>
void each_field(MaybeConst<CopySpeeds> auto& t, V&& visit) {
  visit("gb_per_s", t.gb_per_s);
}

template <class V>
void each_field(MaybeConst<Collectives> auto& t, V&& visit) {
  visit("collective", t.kind);
  visit("dtype", t.dtype);
  visit("in_elements", t.in_elements);
  visit("out_elements", t.out_elements);
  visit("group_size", t.group_size);
  visit("group_name", t.group_name);
  visit("group_ranks", t.group_ranks);
  visit("sequence", t.sequence);
  visit("peer", t.peer);
  visit("in_split", t.in_split);
  visit("out_split", t.out_split);
}

template <class V>
void each_field(MaybeConst<MemoryEvents> auto& t, V&& visit) {  // time and track are the event's
  visit("bytes", t.bytes);
  visit("address", t.address, 0);
  visit("total_allocated", t.total_allocated);
  visit("total_reserved", t.total_reserved);
  visit("device_type", t.device_type, -1);
  visit("device_index", t.device_index, -1);
}

// The detail tables whose rows belong to slices, with the word for one row.
template <class V>
void each_detail(MaybeConst<Trace> auto& trace, V&& visit) {
  visit("op", trace.ops);
  visit("launch", trace.launches);
  visit("device", trace.device);
  visit("copy", trace.copy_speeds);
  visit("collective", trace.collectives);
}

template <class V>
void each_field(MaybeConst<Track> auto& t, V&& visit) {
  visit("process", t.process);
  visit("thread", t.thread);
  visit("process_name", t.process_name);
  visit("thread_name", t.thread_name);
  visit("sort_index", t.sort_index);
  visit("device", t.device);
}

template <class V>
void each_field(MaybeConst<Category> auto& c, V&& visit) {
  visit("name", c.name);
  visit("kind", c.kind, SliceKind::other);
}

template <class V>
void each_field(MaybeConst<RankInfo> auto& r, V&& visit) {
  visit("rank", r.rank);
  visit("world_size", r.world_size);
  visit("source", r.source, RankSource::communicator);
  visit("backend", r.backend);
}

template <class V>
void each_field(MaybeConst<DeviceInfo> auto& d, V&& visit) {
  visit("id", d.id);
  visit("name", d.name);
  visit("sm_count", d.sm_count);
  visit("max_threads_per_sm", d.max_threads_per_sm);
  visit("warp_size", d.warp_size);
  visit("memory_bytes", d.memory_bytes);
  visit("compute_major", d.compute_major);
  visit("compute_minor", d.compute_minor);
}

template <class V>
void each_field(MaybeConst<ProcessGroup> auto& g, V&& visit) {
  visit("name", g.name);
  visit("description", g.description);
  visit("backend", g.backend);
  visit("size", g.size);
  visit("ranks", g.ranks);
}

template <class V>
void each_field(MaybeConst<Metadata> auto& m, V&& visit) {
  visit("key", m.key);
  visit("json", m.json);
}

template <class V>
void each_field(MaybeConst<Issue> auto& i, V&& visit) {
  visit("code", i.code);
  visit("severity", i.severity, Severity::lost);
  visit("sentence", i.sentence);
  visit("advice", i.advice);
  visit("count", i.count);
  visit("file", i.file);
  visit("offset", i.offset);
  visit("event", i.event);
}

}  // namespace stepscope
