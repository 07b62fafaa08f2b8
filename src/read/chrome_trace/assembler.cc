#include "read/chrome_trace/assembler.h"

#include "formats/json_text.h"

namespace stepscope::read::chrome_trace {
namespace {

template <class T>
void remember(std::vector<T>& table, std::size_t at, T value, T fill) {
  if (table.size() <= at) table.resize(at + 1, fill);
  table[at] = value;
}

void append_slices(Column<SliceId>& to, const Column<std::uint32_t>& rows, std::uint32_t first) {
  SliceId* out = to.extend(rows.size());
  for (std::size_t i = 0; i < rows.size(); i++) out[i] = static_cast<SliceId>(first + rows[i]);
}

}  // namespace

void Assembler::learn(std::size_t index, const Batch& batch) {
  Worker& worker = workers_[index];
  for (const auto& [id, text] : batch.new_strings) {
    remember(worker.raw, id, text, std::string_view());
    remember(worker.strings, id, StringId::none, StringId::none);
  }
  for (const auto& [id, ids] : batch.new_tracks) {
    remember(worker.raw_tracks, id, ids, RawTrack());
    remember(worker.tracks, id, TrackId::none, TrackId::none);
  }
  for (const auto& [id, text] : batch.new_categories) {
    remember(worker.raw_categories, id, text, kNoId);
    remember(worker.categories, id, CategoryId::none, CategoryId::none);
  }
}

// Two raw spellings of one text ("\u0041" and "A") meet in one id here.
StringId Assembler::intern_raw(std::string_view raw) {
  if (formats::is_clean(raw)) return trace_.strings.intern(raw);
  bool repaired = false;
  const std::string text = formats::unescape(raw, repaired);
  if (repaired) repaired_.intern(raw);
  return trace_.strings.intern(text);
}

StringId Assembler::string(Worker& worker, LocalId local) {
  if (local == kNoId) return StringId::none;
  StringId& id = worker.strings[local];
  if (id == StringId::none) id = intern_raw(worker.raw[local]);
  return id;
}

StringId Assembler::id_text(Worker& worker, const RawId& id) {
  if (id.number != kAbsent) return trace_.strings.intern(std::to_string(id.number));
  return string(worker, id.text);
}

TrackId Assembler::find_track(StringId process, StringId thread) {
  const auto id = static_cast<TrackId>(trace_.tracks.size());
  const auto [known, is_new] = track_index_.try_emplace(track_key(process, thread), id);
  if (is_new) trace_.tracks.push_back({.process = process, .thread = thread});
  return known->second;
}

TrackId Assembler::track(Worker& worker, std::uint32_t local) {
  TrackId& id = worker.tracks[local];
  if (id == TrackId::none) {
    const RawTrack& raw = worker.raw_tracks[local];
    const StringId process = id_text(worker, raw.process);
    id = find_track(process, raw.lane == kNoId ? id_text(worker, raw.thread) : string(worker, raw.lane));
  }
  return id;
}

CategoryId Assembler::category(Worker& worker, std::uint16_t local) {
  if (local == 0xffff) return CategoryId::none;
  CategoryId& id = worker.categories[local];
  if (id == CategoryId::none) {
    const StringId name = string(worker, worker.raw_categories[local]);
    auto& all = trace_.categories;
    const auto known = category_index_.find(name);
    if (known != category_index_.end()) return id = known->second;
    id = static_cast<CategoryId>(all.size());
    if (id >= CategoryId::none) return id = CategoryId::none;  // a file with 65,535 categories uses them as names
    all.push_back({name, slice_kind(trace_.strings[name])});
    category_index_.emplace(name, id);
  }
  return id;
}

void Assembler::append_strings(Worker& worker, Column<StringId>& to, const Column<LocalId>& from) {
  StringId* out = to.extend(from.size());
  for (std::size_t i = 0; i < from.size(); i++) out[i] = string(worker, from[i]);
}

void Assembler::append_optional(Worker& worker, OptionalColumn<StringId>& to, const Column<LocalId>& from) {
  scratch_.clear();
  append_strings(worker, scratch_, from);
  to.append(scratch_.span());
}

void Assembler::append_tracks(Worker& worker, Column<TrackId>& to, const Column<std::uint32_t>& from) {
  TrackId* out = to.extend(from.size());
  for (std::size_t i = 0; i < from.size(); i++) out[i] = track(worker, from[i]);
}

void Assembler::append_categories(Worker& worker, Column<CategoryId>& to, const Column<std::uint16_t>& from) {
  CategoryId* out = to.extend(from.size());
  for (std::size_t i = 0; i < from.size(); i++) out[i] = category(worker, from[i]);
}

void Assembler::commit_slices(Worker& worker, const Batch& batch) {
  Slices& s = trace_.slices;
  s.start_ns.append(batch.start_ns.span());
  s.dur_ns.append(batch.dur_ns.span());
  append_strings(worker, s.name, batch.name);
  append_tracks(worker, s.track, batch.track);
  append_categories(worker, s.category, batch.category);
  s.place.append(batch.place.span());
}

void Assembler::commit_details(Worker& worker, const Batch& batch, std::uint32_t first) {
  {
    Ops& t = trace_.ops;
    const auto& b = batch.ops;
    append_slices(t.slice, b.row, first);
    t.external_id.append(b.external_id.span());
    t.record_function_id.append(b.record_function_id.span());
    t.sequence.append(b.sequence.span());
    t.fwd_thread.append(b.fwd_thread.span());
    append_optional(worker, t.input_dims, b.dims);
    append_optional(worker, t.input_types, b.types);
    append_optional(worker, t.concrete_inputs, b.concrete);
    append_optional(worker, t.call_stack, b.call_stack);
    t.stream.append(b.stream.span());
  }
  {
    Launches& t = trace_.launches;
    append_slices(t.slice, batch.launches.row, first);
    t.correlation.append(batch.launches.correlation.span());
    t.external_id.append(batch.launches.external_id.span());
  }
  {
    DeviceRows& t = trace_.device;
    const auto& b = batch.device;
    append_slices(t.slice, b.row, first);
    t.correlation.append(b.correlation.span());
    t.external_id.append(b.external_id.span());
    t.device.append(b.device.span());
    t.stream.append(b.stream.span());
    for (int k = 0; k < 3; k++) {
      t.grid[k].append(b.grid[k].span());
      t.block[k].append(b.block[k].span());
    }
    t.registers.append(b.registers.span());
    t.shared_bytes.append(b.shared_bytes.span());
    t.blocks_per_sm.append(b.blocks_per_sm.span());
    t.warps_per_sm.append(b.warps_per_sm.span());
    t.occupancy_percent.append(b.occupancy_percent.span());
    t.bytes.append(b.bytes.span());
    t.wait_stream.append(b.wait_stream.span());
    t.wait_correlation.append(b.wait_correlation.span());
  }
  append_slices(trace_.copy_speeds.slice, batch.copy_speeds.row, first);
  trace_.copy_speeds.gb_per_s.append(batch.copy_speeds.gb_per_s.span());
  {
    Collectives& t = trace_.collectives;
    const auto& b = batch.collectives;
    append_slices(t.slice, b.row, first);
    append_strings(worker, t.kind, b.kind);
    append_strings(worker, t.dtype, b.dtype);
    t.in_elements.append(b.in_elements.span());
    t.out_elements.append(b.out_elements.span());
    t.group_size.append(b.group_size.span());
    append_strings(worker, t.group_name, b.group_name);
    append_strings(worker, t.group_ranks, b.group_ranks);
    t.sequence.append(b.sequence.span());
    t.peer.append(b.peer.span());
    append_optional(worker, t.in_split, b.in_split);
    append_optional(worker, t.out_split, b.out_split);
  }
}

void Assembler::commit_rest(Worker& worker, const Batch& batch) {
  {
    MemoryEvents& t = trace_.memory;
    const auto& b = batch.memory;
    t.time_ns.append(b.time_ns.span());
    append_tracks(worker, t.track, b.track);
    t.bytes.append(b.bytes.span());
    t.address.append(b.address.span());
    t.total_allocated.append(b.total_allocated.span());
    t.total_reserved.append(b.total_reserved.span());
    t.device_type.append(b.device_type.span());
    t.device_index.append(b.device_index.span());
  }
  {
    Flows& t = trace_.flows;
    const auto& b = batch.flows;
    t.time_ns.append(b.time_ns.span());
    for (std::size_t i = 0; i < b.id.size(); i++) {
      const std::int64_t text = b.id_text[i] == kNoId ? 0 : std::int64_t{1} << 40;
      t.id.push_back(text == 0 ? b.id[i] : text + static_cast<std::uint32_t>(string(worker, b.id_text[i])));
    }
    append_tracks(worker, t.track, b.track);
    append_categories(worker, t.category, b.category);
    t.phase.append(b.phase.span());
  }
  {
    Instants& t = trace_.instants;
    const auto& b = batch.instants;
    t.time_ns.append(b.time_ns.span());
    append_strings(worker, t.name, b.name);
    append_tracks(worker, t.track, b.track);
    append_categories(worker, t.category, b.category);
    t.place.append(b.place.span());
  }
  {
    Counters& t = trace_.counters;
    const auto& b = batch.counters;
    t.time_ns.append(b.time_ns.span());
    append_strings(worker, t.name, b.name);
    append_strings(worker, t.key, b.key);
    append_tracks(worker, t.track, b.track);
    t.value.append(b.value.span());
  }
}

void Assembler::commit(std::size_t index, Batch& batch) {
  Worker& worker = workers_[index];
  const auto first = static_cast<std::uint32_t>(trace_.slices.size());
  const auto first_instant = static_cast<std::uint32_t>(trace_.instants.size());
  trace_.source.events += batch.events;
  trace_.source.blocks.push_back({first, first_instant, batch.text_offset, 0});
  commit_slices(worker, batch);
  commit_details(worker, batch, first);
  commit_rest(worker, batch);
  for (Half half : batch.halves) {
    half.track = static_cast<std::uint32_t>(track(worker, half.track));
    half.name = static_cast<LocalId>(string(worker, half.name));
    half.category = static_cast<std::uint32_t>(category(worker, static_cast<std::uint16_t>(half.category)));
    halves_.push_back(half);
  }
  for (const std::string_view event : batch.new_metadata) metadata_.intern(event);
  for (std::size_t i = 0; i < defects_.size(); i++) {
    if (defects_[i].count == 0) defects_[i].first_offset = batch.defects[i].first_offset;
    defects_[i].count += batch.defects[i].count;
  }
}

}  // namespace stepscope::read::chrome_trace
