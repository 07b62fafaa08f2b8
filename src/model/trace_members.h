// Every member of every part of a Trace, once: what writes, compares or measures a whole trace walks it from here.
//
// each_member(part, visit) calls visit(member) for each member in order. The structured bindings make forgetting one
// impossible: a struct that gains a member no longer compiles here.
#pragma once

#include <type_traits>

#include "model/trace.h"

namespace stepscope {

template <class T, class Part>
concept MaybeConst = std::is_same_v<std::remove_const_t<T>, Part>;

namespace detail {
template <class Visit, class... Members>
void visit_all(Visit& visit, Members&... members) {
  (visit(members), ...);
}
}  // namespace detail

template <class V>
void each_member(MaybeConst<Category> auto& part, V& visit) {
  auto& [name, kind] = part;
  detail::visit_all(visit, name, kind);
}

template <class V>
void each_member(MaybeConst<Track> auto& part, V& visit) {
  auto& [process, thread, process_name, thread_name, sort_index, device] = part;
  detail::visit_all(visit, process, thread, process_name, thread_name, sort_index, device);
}

template <class V>
void each_member(MaybeConst<Slices> auto& part, V& visit) {
  auto& [start, dur, name, track, category, place, parent, depth, phase] = part;
  detail::visit_all(visit, start, dur, name, track, category, place, parent, depth, phase);
}

template <class V>
void each_member(MaybeConst<Ops> auto& part, V& visit) {
  auto& [slice, external_id, record_function_id, sequence, fwd_thread, dims, types, concrete, call_stack, stream] =
      part;
  detail::visit_all(visit, slice, external_id, record_function_id, sequence, fwd_thread, dims, types, concrete,
                    call_stack, stream);
}

template <class V>
void each_member(MaybeConst<Launches> auto& part, V& visit) {
  auto& [slice, correlation, external_id] = part;
  detail::visit_all(visit, slice, correlation, external_id);
}

template <class V>
void each_member(MaybeConst<DeviceRows> auto& part, V& visit) {
  auto& [slice, correlation, external_id, device, stream, grid, block, registers, shared_bytes, blocks_per_sm,
         warps_per_sm, occupancy, bytes, wait_stream, wait_correlation, launch, op, device_class, rule, step, phase] =
      part;
  detail::visit_all(visit, slice, correlation, external_id, device, stream, grid[0], grid[1], grid[2], block[0],
                    block[1], block[2], registers, shared_bytes, blocks_per_sm, warps_per_sm, occupancy, bytes,
                    wait_stream, wait_correlation, launch, op, device_class, rule, step, phase);
}

template <class V>
void each_member(MaybeConst<CopySpeeds> auto& part, V& visit) {
  auto& [slice, gb_per_s] = part;
  detail::visit_all(visit, slice, gb_per_s);
}

template <class V>
void each_member(MaybeConst<Collectives> auto& part, V& visit) {
  auto& [slice, kind, dtype, in_elements, out_elements, group_size, group_name, group_ranks, sequence, peer, in_split,
         out_split] = part;
  detail::visit_all(visit, slice, kind, dtype, in_elements, out_elements, group_size, group_name, group_ranks, sequence,
                    peer, in_split, out_split);
}

template <class V>
void each_member(MaybeConst<MemoryEvents> auto& part, V& visit) {
  auto& [time, track, bytes, address, total_allocated, total_reserved, device_type, device_index] = part;
  detail::visit_all(visit, time, track, bytes, address, total_allocated, total_reserved, device_type, device_index);
}

template <class V>
void each_member(MaybeConst<Flows> auto& part, V& visit) {
  auto& [time, id, track, category, phase] = part;
  detail::visit_all(visit, time, id, track, category, phase);
}

template <class V>
void each_member(MaybeConst<Instants> auto& part, V& visit) {
  auto& [time, name, track, category, place] = part;
  detail::visit_all(visit, time, name, track, category, place);
}

template <class V>
void each_member(MaybeConst<Counters> auto& part, V& visit) {
  auto& [time, name, key, track, value] = part;
  detail::visit_all(visit, time, name, key, track, value);
}

template <class V>
void each_member(MaybeConst<GraphNodes> auto& part, V& visit) {
  auto& [id, name, kind, parent, start, dur, record_function_id, sequence, thread, fwd_thread, stream, dims, types,
         collective, group, comm_bytes, place, dependency_begin, depends_on] = part;
  detail::visit_all(visit, id, name, kind, parent, start, dur, record_function_id, sequence, thread, fwd_thread, stream,
                    dims, types, collective, group, comm_bytes, place, dependency_begin, depends_on);
}

template <class V>
void each_member(MaybeConst<DeviceInfo> auto& part, V& visit) {
  auto& [id, name, sms, threads, warp, memory, major, minor] = part;
  detail::visit_all(visit, id, name, sms, threads, warp, memory, major, minor);
}

template <class V>
void each_member(MaybeConst<ProcessGroup> auto& part, V& visit) {
  auto& [name, description, backend, size, ranks] = part;
  detail::visit_all(visit, name, description, backend, size, ranks);
}

template <class V>
void each_member(MaybeConst<Metadata> auto& part, V& visit) {
  auto& [key, json] = part;
  detail::visit_all(visit, key, json);
}

template <class V>
void each_member(MaybeConst<PlaceBlock> auto& part, V& visit) {
  auto& [first_slice, first_instant, offset, file] = part;
  detail::visit_all(visit, first_slice, first_instant, offset, file);
}

template <class V>
void each_member(MaybeConst<Source> auto& part, V& visit) {
  auto& [path, format, writer, compressed, cached, file_bytes, text_bytes, events, blocks, parts] = part;
  detail::visit_all(visit, path, format, writer, compressed, cached, file_bytes, text_bytes, events, blocks, parts);
}

template <class V>
void each_member(MaybeConst<RankInfo> auto& part, V& visit) {
  auto& [rank, world_size, source, backend] = part;
  detail::visit_all(visit, rank, world_size, source, backend);
}

template <class V>
void each_member(MaybeConst<ClassRule> auto& part, V& visit) {
  auto& [name, pattern, family, device_class, why] = part;
  detail::visit_all(visit, name, pattern, family, device_class, why);
}

template <class V>
void each_member(MaybeConst<Step> auto& part, V& visit) {
  auto& [name, number, start, end, device_end, track, partial] = part;
  detail::visit_all(visit, name, number, start, end, device_end, track, partial);
}

template <class V>
void each_member(MaybeConst<HeldBefore> auto& part, V& visit) {
  auto& [device, category, module, bytes] = part;
  detail::visit_all(visit, device, category, module, bytes);
}

template <class V>
void each_member(MaybeConst<ModuleSize> auto& part, V& visit) {
  auto& [path, parameters, unread, learned, beside] = part;
  detail::visit_all(visit, path, parameters, unread, learned, beside);
}

template <class V>
void each_member(MaybeConst<CodeCall> auto& part, V& visit) {
  auto& [file, function_line, called, line] = part;
  detail::visit_all(visit, file, function_line, called, line);
}

template <class V>
void each_member(MaybeConst<ModuleCall> auto& part, V& visit) {
  auto& [slice, name, type] = part;
  detail::visit_all(visit, slice, name, type);
}

template <class V>
void each_member(MaybeConst<Backward> auto& part, V& visit) {
  auto& [forward, backward] = part;
  detail::visit_all(visit, forward, backward);
}

template <class V>
void each_member(MaybeConst<LinkCounts> auto& part, V& visit) {
  auto& [linked, by_flow, unlinked, with_work, dropped, overlaps] = part;
  detail::visit_all(visit, linked, by_flow, unlinked, with_work, dropped, overlaps);
}

template <class V>
void each_member(MaybeConst<Issue> auto& part, V& visit) {
  auto& [code, severity, sentence, advice, count, file, offset, event] = part;
  detail::visit_all(visit, code, severity, sentence, advice, count, file, offset, event);
}

template <class V>
void each_member(MaybeConst<Trace> auto& part, V& visit) {
  auto& [source, rank, strings, metadata, devices, groups, held_before, module_sizes, code, categories, tracks,
         clock_base, slices, ops, launches, device, copy_speeds, collectives, memory, flows, instants, counters, nodes,
         samples, sampled, snapshot, memory_timeline, memory_file, issues, by_track, track_begin, class_rules, steps,
         step_source, modules, backward, links, snapshot_history, clock] = part;
  (void)clock;                   // belongs to the run
  (void)samples, (void)sampled;  // of traces of telemetry, which are read anew each time
  (void)snapshot, (void)memory_timeline, (void)memory_file, (void)snapshot_history;  // of Run::snapshots, which are too
  detail::visit_all(visit, source, rank, strings, metadata, devices, groups, held_before, module_sizes, code,
                    categories, tracks, clock_base, slices, ops, launches, device, copy_speeds, collectives, memory,
                    flows, instants, counters, nodes, issues, by_track, track_begin, class_rules, steps, step_source,
                    modules, backward, links);
}

}  // namespace stepscope
