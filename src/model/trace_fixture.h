// TraceFixture: builds a Trace by hand, event by event, for unit tests. Not part of the program.
//
//   TraceFixture f;
//   const TrackId cpu = f.host("1"), gpu = f.stream("7");
//   f.slice(cpu, "cpu_op", "aten::mm", 0, 100);
//   f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);      // correlation 1
//   f.kernel(gpu, "sgemm", 20, 50, 1);
//   f.trace …                                         // then derive::derive(f.trace, {}) where links are wanted
//
// Times are ns. Slices get ids in the order of the calls, as a reader would give them in file order.
#pragma once

#include <cmath>
#include <string_view>

#include "model/trace.h"

namespace stepscope {

struct OpIds {
  std::int64_t external_id = kAbsent;
  std::int64_t sequence = kAbsent;
  std::int64_t fwd_thread = kAbsent;
  std::string_view dims = {}, types = {}, concrete = {};  // JSON texts
};

class TraceFixture {
 public:
  Trace trace;

  TrackId host(std::string_view thread, std::string_view process = "100") { return track(process, thread, false); }
  TrackId stream(std::string_view stream, std::string_view device = "0") { return track(device, stream, true); }

  CategoryId category(std::string_view name) {
    const StringId id = trace.strings.intern(name);
    for (std::size_t i = 0; i < trace.categories.size(); i++)
      if (trace.categories[i].name == id) return static_cast<CategoryId>(i);
    trace.categories.push_back({id, slice_kind(name)});
    return static_cast<CategoryId>(trace.categories.size() - 1);
  }

  SliceId slice(TrackId track, std::string_view category_name, std::string_view name, std::int64_t start_ns,
                std::int64_t dur_ns) {
    Slices& slices = trace.slices;
    slices.start_ns.push_back(start_ns);
    slices.dur_ns.push_back(dur_ns);
    slices.name.push_back(trace.strings.intern(name));
    slices.track.push_back(track);
    slices.category.push_back(category(category_name));
    slices.place.push_back(0);
    return static_cast<SliceId>(slices.size() - 1);
  }

  SliceId op(TrackId track, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns, OpIds ids = {},
             std::string_view category_name = "cpu_op") {
    const SliceId id = slice(track, category_name, name, start_ns, dur_ns);
    Ops& ops = trace.ops;
    ops.slice.push_back(id);
    ops.external_id.push_back(ids.external_id);
    ops.record_function_id.push_back(kAbsent);
    ops.sequence.push_back(ids.sequence);
    ops.fwd_thread.push_back(ids.fwd_thread);
    ops.input_dims.push_back(text(ids.dims));
    ops.input_types.push_back(text(ids.types));
    ops.concrete_inputs.push_back(text(ids.concrete));
    ops.call_stack.push_back(StringId::none);
    ops.stream.push_back(kAbsent);
    return id;
  }

  SliceId annotation(TrackId track, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns) {
    return op(track, name, start_ns, dur_ns, {}, "user_annotation");
  }

  SliceId launch(TrackId track, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                 std::int64_t correlation, std::int64_t external_id = kAbsent) {
    const SliceId id = slice(track, "cuda_runtime", name, start_ns, dur_ns);
    trace.launches.slice.push_back(id);
    trace.launches.correlation.push_back(correlation);
    trace.launches.external_id.push_back(external_id);
    return id;
  }

  SliceId kernel(TrackId track, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                 std::int64_t correlation = kAbsent) {
    return device(track, "kernel", name, start_ns, dur_ns, correlation);
  }

  // Any row of a device track: category "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync" …
  SliceId device(TrackId track, std::string_view category_name, std::string_view name, std::int64_t start_ns,
                 std::int64_t dur_ns, std::int64_t correlation = kAbsent, std::int64_t external_id = kAbsent) {
    const SliceId id = slice(track, category_name, name, start_ns, dur_ns);
    DeviceRows& rows = trace.device;
    rows.slice.push_back(id);
    rows.correlation.push_back(correlation);
    rows.external_id.push_back(external_id);
    rows.device.push_back(0);
    rows.stream.push_back(static_cast<std::int64_t>(track));
    for (auto* columns : {rows.grid, rows.block})
      for (int axis = 0; axis < 3; axis++) columns[axis].push_back(0);
    rows.registers.push_back(DeviceRows::kNoCount);
    rows.shared_bytes.push_back(DeviceRows::kNoCount);
    for (auto* column : {&rows.blocks_per_sm, &rows.warps_per_sm, &rows.occupancy_percent}) column->push_back(NAN);
    for (auto* column : {&rows.bytes, &rows.wait_stream, &rows.wait_correlation}) column->push_back(kAbsent);
    return id;
  }

  // Metadata of a collective on a slice that was just added (an op or a kernel).
  void collective(SliceId slice_id, std::string_view kind, std::int64_t elements, std::int64_t group_size,
                  std::string_view dtype = "Float") {
    Collectives& rows = trace.collectives;
    rows.slice.push_back(slice_id);
    rows.kind.push_back(trace.strings.intern(kind));
    rows.dtype.push_back(trace.strings.intern(dtype));
    rows.in_elements.push_back(elements);
    rows.out_elements.push_back(elements);
    rows.group_size.push_back(group_size);
    rows.group_name.push_back(StringId::none);
    rows.group_ranks.push_back(StringId::none);
    rows.sequence.push_back(kAbsent);
    rows.peer.push_back(kAbsent);
    rows.in_split.push_back(StringId::none);
    rows.out_split.push_back(StringId::none);
  }

  // One arrow: from (track, time) to (track, time).
  void flow(std::string_view category_name, std::int64_t id, TrackId from, std::int64_t from_ns, TrackId to,
            std::int64_t to_ns) {
    flow_end(category_name, id, 's', from, from_ns);
    flow_end(category_name, id, 'f', to, to_ns);
  }

 private:
  StringId text(std::string_view words) { return words.empty() ? StringId::none : trace.strings.intern(words); }
  TrackId track(std::string_view process, std::string_view thread, bool device) {
    Track added;
    added.process = trace.strings.intern(process);
    added.thread = trace.strings.intern(thread);
    added.device = device;
    trace.tracks.push_back(added);
    return static_cast<TrackId>(trace.tracks.size() - 1);
  }
  void flow_end(std::string_view category_name, std::int64_t id, char phase, TrackId track, std::int64_t time_ns) {
    trace.flows.time_ns.push_back(time_ns);
    trace.flows.id.push_back(id);
    trace.flows.track.push_back(track);
    trace.flows.category.push_back(category(category_name));
    trace.flows.phase.push_back(phase);
  }
};

}  // namespace stepscope
