// Compares two traces column by column, for tests: reader paths against each other, a cache against the file.
//
//   CHECK(first_difference(a, b) == "");
//
// Texts, tracks and categories are compared by what they say: their ids follow the order of first use, which depends on
// how the text was cut into chunks. Places are compared as offsets in the text. Not part of the program.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "model/trace.h"

namespace stepscope {

class TraceCompare {
 public:
  TraceCompare(const Trace& a, const Trace& b) : a_(a), b_(b) {}

  std::string read_parts() {
    source();
    tracks();
    slices();
    details();
    device();
    rest();
    issues();
    return difference_;
  }
  // What the tables say, whatever text they were read from.
  std::string contents() {
    places_count_ = false;
    tracks();
    slices();
    details();
    device();
    rest();
    return difference_;
  }
  // What derive filled; ids must be the same here, as they are when both come from one reading.
  std::string derived_parts() {
    same("slices.parent", a_.slices.parent, b_.slices.parent);
    same("slices.depth", a_.slices.depth, b_.slices.depth);
    same("slices.phase", a_.slices.phase, b_.slices.phase);
    same("device.launch", a_.device.launch, b_.device.launch);
    same("device.op", a_.device.op, b_.device.op);
    same("device.device_class", a_.device.device_class, b_.device.device_class);
    same("device.rule", a_.device.rule, b_.device.rule);
    same("device.step", a_.device.step, b_.device.step);
    same("device.phase", a_.device.phase, b_.device.phase);
    same("by_track", a_.by_track, b_.by_track);
    same("track_begin", a_.track_begin, b_.track_begin);
    each("class_rules", a_.class_rules, b_.class_rules, [](const Trace&, const ClassRule& r) {
      return std::tuple(r.name, r.pattern, r.family, r.device_class, r.why);
    });
    each("steps", a_.steps, b_.steps, [](const Trace&, const Step& s) {
      return std::tuple(s.name, s.number, s.start_ns, s.end_ns, s.device_end_ns, s.track, s.partial);
    });
    each("modules", a_.modules, b_.modules,
         [](const Trace& t, const ModuleCall& m) { return std::tuple(m.slice, t.strings[m.name], t.strings[m.type]); });
    each("backward", a_.backward, b_.backward,
         [](const Trace&, const Backward& b) { return std::tuple(b.forward, b.backward); });
    value("step_source", a_.step_source, b_.step_source);
    const auto links = [](const LinkCounts& l) {
      return std::tuple(l.device_linked, l.device_linked_by_flow, l.device_unlinked, l.launches_with_work,
                        l.launches_dropped, l.partial_overlaps);
    };
    value("links", links(a_.links), links(b_.links));
    return difference_;
  }

 private:
  void differ(std::string_view what, std::size_t row) {
    if (difference_.empty()) difference_ = std::string(what) + " differs at row " + std::to_string(row);
  }
  template <class T>
  void value(std::string_view what, const T& a, const T& b) {
    if (!(a == b) && difference_.empty()) difference_ = std::string(what) + " differs";
  }
  bool sizes(std::string_view what, std::size_t a, std::size_t b) {
    if (a == b) return true;
    if (difference_.empty()) {
      difference_ = std::string(what) + " has " + std::to_string(a) + " rows against " + std::to_string(b);
    }
    return false;
  }
  // Rows of any table, each turned into something comparable by `view(trace, row value)`.
  template <class Column, class View>
  void each(std::string_view what, const Column& a, const Column& b, View view) {
    if (!sizes(what, a.size(), b.size())) return;
    for (std::size_t row = 0; row < a.size(); row++) {
      if (!(view(a_, a[row]) == view(b_, b[row]))) return differ(what, row);
    }
  }
  template <class Column>
  void same(std::string_view what, const Column& a, const Column& b) {
    each(what, a, b, [](const Trace&, const auto& v) { return v; });
  }
  template <class Column>
  void floats(std::string_view what, const Column& a, const Column& b) {  // NaN means "not given"
    each(what, a, b, [](const Trace&, auto v) { return std::pair(std::isnan(v), std::isnan(v) ? decltype(v){0} : v); });
  }
  template <class Column>
  void texts(std::string_view what, const Column& a, const Column& b) {
    each(what, a, b, [](const Trace& t, StringId id) { return std::pair(id == StringId::none, t.strings[id]); });
  }
  template <class Column>
  void tracks_of(std::string_view what, const Column& a, const Column& b) {
    each(what, a, b, [](const Trace& t, TrackId id) { return track_key(t, t.tracks[static_cast<std::size_t>(id)]); });
  }
  template <class Column>
  void categories(std::string_view what, const Column& a, const Column& b) {
    each(what, a, b, [](const Trace& t, CategoryId id) {
      if (id == CategoryId::none) return std::tuple(true, std::string_view(), SliceKind::other);
      const Category& category = t.categories[static_cast<std::size_t>(id)];
      return std::tuple(false, t.strings[category.name], category.kind);
    });
  }
  static std::tuple<std::string_view, std::string_view> track_key(const Trace& t, const Track& track) {
    return {t.strings[track.process], t.strings[track.thread]};
  }

  void source() {
    value("events", a_.source.events, b_.source.events);
    value("text_bytes", a_.source.text_bytes, b_.source.text_bytes);
    value("writer", a_.source.writer, b_.source.writer);
    value("rank", std::tuple(a_.rank.rank, a_.rank.world_size, a_.rank.source, a_.rank.backend),
          std::tuple(b_.rank.rank, b_.rank.world_size, b_.rank.source, b_.rank.backend));
    value("clock_base_ns", a_.clock_base_ns, b_.clock_base_ns);
    each("metadata", a_.metadata, b_.metadata,
         [](const Trace&, const Metadata& m) { return std::tuple(m.key, m.json); });
    each("devices", a_.devices, b_.devices, [](const Trace&, const DeviceInfo& d) {
      return std::tuple(d.id, d.name, d.sm_count, d.max_threads_per_sm, d.warp_size, d.memory_bytes, d.compute_major,
                        d.compute_minor);
    });
  }
  void tracks() {
    const auto rows = [](const Trace& t) {
      std::vector<
          std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, std::int64_t, bool>>
          all;
      for (const Track& k : t.tracks) {
        all.emplace_back(t.strings[k.process], t.strings[k.thread], t.strings[k.process_name], t.strings[k.thread_name],
                         k.sort_index, k.device);
      }
      std::sort(all.begin(), all.end());
      return all;
    };
    same("tracks", rows(a_), rows(b_));
  }
  void slices() {
    const Slices &a = a_.slices, &b = b_.slices;
    same("slices.start_ns", a.start_ns, b.start_ns);
    same("slices.dur_ns", a.dur_ns, b.dur_ns);
    texts("slices.name", a.name, b.name);
    tracks_of("slices.track", a.track, b.track);
    categories("slices.category", a.category, b.category);
    if (!places_count_ || !sizes("slices.place", a.place.size(), b.place.size())) return;
    places(
        "slices", a.place.size(), a_, b_, [](const PlaceBlock& block) { return block.first_slice; }, a.place, b.place);
  }
  template <class First, class Places>
  void places(std::string_view what, std::size_t rows, const Trace& a, const Trace& b, First first, const Places& pa,
              const Places& pb) {
    const auto offsets = [&](const Trace& t, const Places& p) {
      std::vector<std::uint64_t> all;
      std::size_t block = 0;
      const auto& blocks = t.source.blocks;
      for (std::size_t row = 0; row < rows; row++) {
        while (block + 1 < blocks.size() && first(blocks[block + 1]) <= row) block++;
        all.push_back((blocks.empty() ? 0 : blocks[block].offset) + p[row]);
      }
      return all;
    };
    same(std::string(what) + " offset in the text", offsets(a, pa), offsets(b, pb));
  }
  void details() {
    same("ops.slice", a_.ops.slice, b_.ops.slice);
    same("ops.external_id", a_.ops.external_id, b_.ops.external_id);
    same("ops.record_function_id", a_.ops.record_function_id, b_.ops.record_function_id);
    same("ops.sequence", a_.ops.sequence, b_.ops.sequence);
    same("ops.fwd_thread", a_.ops.fwd_thread, b_.ops.fwd_thread);
    texts("ops.input_dims", a_.ops.input_dims, b_.ops.input_dims);
    texts("ops.input_types", a_.ops.input_types, b_.ops.input_types);
    texts("ops.concrete_inputs", a_.ops.concrete_inputs, b_.ops.concrete_inputs);
    texts("ops.call_stack", a_.ops.call_stack, b_.ops.call_stack);
    same("ops.stream", a_.ops.stream, b_.ops.stream);
    same("copy_speeds.slice", a_.copy_speeds.slice, b_.copy_speeds.slice);
    same("copy_speeds.gb_per_s", a_.copy_speeds.gb_per_s, b_.copy_speeds.gb_per_s);
    same("launches.slice", a_.launches.slice, b_.launches.slice);
    same("launches.correlation", a_.launches.correlation, b_.launches.correlation);
    same("launches.external_id", a_.launches.external_id, b_.launches.external_id);
    const Collectives &a = a_.collectives, &b = b_.collectives;
    same("collectives.slice", a.slice, b.slice);
    texts("collectives.kind", a.kind, b.kind);
    texts("collectives.dtype", a.dtype, b.dtype);
    same("collectives.in_elements", a.in_elements, b.in_elements);
    same("collectives.out_elements", a.out_elements, b.out_elements);
    same("collectives.group_size", a.group_size, b.group_size);
    texts("collectives.group_name", a.group_name, b.group_name);
    texts("collectives.group_ranks", a.group_ranks, b.group_ranks);
    same("collectives.sequence", a.sequence, b.sequence);
    same("collectives.peer", a.peer, b.peer);
    texts("collectives.in_split", a.in_split, b.in_split);
    texts("collectives.out_split", a.out_split, b.out_split);
  }
  void device() {
    const DeviceRows &a = a_.device, &b = b_.device;
    same("device.slice", a.slice, b.slice);
    same("device.correlation", a.correlation, b.correlation);
    same("device.external_id", a.external_id, b.external_id);
    same("device.device", a.device, b.device);
    same("device.stream", a.stream, b.stream);
    for (int k = 0; k < 3; k++) {
      same("device.grid", a.grid[k], b.grid[k]);
      same("device.block", a.block[k], b.block[k]);
    }
    same("device.registers", a.registers, b.registers);
    same("device.shared_bytes", a.shared_bytes, b.shared_bytes);
    floats("device.blocks_per_sm", a.blocks_per_sm, b.blocks_per_sm);
    floats("device.warps_per_sm", a.warps_per_sm, b.warps_per_sm);
    floats("device.occupancy_percent", a.occupancy_percent, b.occupancy_percent);
    same("device.bytes", a.bytes, b.bytes);
    same("device.wait_stream", a.wait_stream, b.wait_stream);
    same("device.wait_correlation", a.wait_correlation, b.wait_correlation);
  }
  void rest() {
    const MemoryEvents &ma = a_.memory, &mb = b_.memory;
    same("memory.time_ns", ma.time_ns, mb.time_ns);
    tracks_of("memory.track", ma.track, mb.track);
    same("memory.bytes", ma.bytes, mb.bytes);
    same("memory.address", ma.address, mb.address);
    same("memory.total_allocated", ma.total_allocated, mb.total_allocated);
    same("memory.total_reserved", ma.total_reserved, mb.total_reserved);
    same("memory.device_type", ma.device_type, mb.device_type);
    same("memory.device_index", ma.device_index, mb.device_index);
    const Flows &fa = a_.flows, &fb = b_.flows;
    same("flows.time_ns", fa.time_ns, fb.time_ns);
    each("flows.id", fa.id, fb.id, [](const Trace& t, std::int64_t id) {  // text ids: the pool's id + 2^40
      const std::int64_t text = id < 0 ? -1 : id - (std::int64_t{1} << 40);
      const bool is_text = text >= 0 && text < static_cast<std::int64_t>(t.strings.size());
      return std::pair(is_text ? 0 : id, is_text ? t.strings[static_cast<StringId>(text)] : std::string_view());
    });
    tracks_of("flows.track", fa.track, fb.track);
    categories("flows.category", fa.category, fb.category);
    same("flows.phase", fa.phase, fb.phase);
    const Instants &ia = a_.instants, &ib = b_.instants;
    same("instants.time_ns", ia.time_ns, ib.time_ns);
    texts("instants.name", ia.name, ib.name);
    tracks_of("instants.track", ia.track, ib.track);
    categories("instants.category", ia.category, ib.category);
    if (places_count_ && sizes("instants.place", ia.place.size(), ib.place.size())) {
      places(
          "instants", ia.place.size(), a_, b_, [](const PlaceBlock& block) { return block.first_instant; }, ia.place,
          ib.place);
    }
    const Counters &ca = a_.counters, &cb = b_.counters;
    same("counters.time_ns", ca.time_ns, cb.time_ns);
    texts("counters.name", ca.name, cb.name);
    texts("counters.key", ca.key, cb.key);
    tracks_of("counters.track", ca.track, cb.track);
    floats("counters.value", ca.value, cb.value);
  }
  void issues() {
    const auto rows = [](const Trace& t) {
      std::vector<std::tuple<std::string, Severity, std::uint64_t, std::uint64_t>> all;
      for (const Issue& i : t.issues) all.emplace_back(i.code, i.severity, i.count, i.offset.value_or(UINT64_MAX));
      std::sort(all.begin(), all.end());
      return all;
    };
    const auto a = rows(a_), b = rows(b_);
    if (!sizes("issues", a.size(), b.size())) return;
    for (std::size_t i = 0; i < a.size(); i++) {
      if (a[i] != b[i] && difference_.empty()) {
        difference_ = "issue " + std::get<0>(a[i]) + " (" + std::to_string(std::get<2>(a[i])) + " at byte " +
                      std::to_string(std::get<3>(a[i])) + ") against " + std::get<0>(b[i]) + " (" +
                      std::to_string(std::get<2>(b[i])) + " at byte " + std::to_string(std::get<3>(b[i])) + ")";
      }
    }
  }

  const Trace &a_, &b_;
  std::string difference_;
  bool places_count_ = true;
};

// The first difference in what the file said, as a sentence; "" when there is none.
inline std::string first_difference(const Trace& a, const Trace& b) { return TraceCompare(a, b).read_parts(); }

// The first difference in what derive added; both traces must have the same ids.
inline std::string first_derived_difference(const Trace& a, const Trace& b) {
  return TraceCompare(a, b).derived_parts();
}

}  // namespace stepscope
