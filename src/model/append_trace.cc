// Every column of every table is walked by its type: what holds texts, lanes, categories or slices is translated, the
// rest is copied. A new column is therefore appended without a line here.
#include "model/append_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/trace_members.h"

namespace stepscope {
namespace {

constexpr std::int64_t kTextId = std::int64_t{1} << 40;  // ids of arrows above it are texts

struct Translation {
  std::vector<StringId> strings;
  std::vector<CategoryId> categories;
  std::vector<TrackId> tracks;
  std::uint32_t slices = 0;  // rows before

  StringId operator()(StringId id) const { return id == StringId::none ? id : strings[static_cast<std::size_t>(id)]; }
  CategoryId operator()(CategoryId id) const {
    return id == CategoryId::none ? id : categories[static_cast<std::size_t>(id)];
  }
  TrackId operator()(TrackId id) const { return id == TrackId::none ? id : tracks[static_cast<std::size_t>(id)]; }
  SliceId operator()(SliceId id) const {
    return id == SliceId::none ? id : static_cast<SliceId>(static_cast<std::uint32_t>(id) + slices);
  }
};

template <class T>
concept Translated = std::is_invocable_v<const Translation&, T> && std::is_enum_v<T>;

template <class T>
void append_column(Column<T>& to, const Column<T>& from, const Translation& translate) {
  if constexpr (Translated<T>) {
    T* out = to.extend(from.size());
    for (std::size_t row = 0; row < from.size(); row++) out[row] = translate(from[row]);
  } else {
    to.append(from.span());
  }
}

void append_column(NarrowColumn& to, const NarrowColumn& from, const Translation&) {
  for (std::size_t row = 0; row < from.size(); row++) to.push_back(from[row]);
}

template <class Id>
void append_column(OptionalColumn<Id>& to, const OptionalColumn<Id>& from, const Translation& translate) {
  for (std::size_t row = 0; row < from.size(); row++) to.push_back(translate(from[row]));
}

// Both tables list their members in the same order, so the n-th of one is of the type of the n-th of the other.
template <class Table>
void append_table(Table& to, const Table& from, const Translation& translate) {
  std::vector<void*> columns;
  auto remember = [&](auto& column) { columns.push_back(&column); };
  each_member(to, remember);
  std::size_t next = 0;
  auto append = [&](const auto& column) {
    using ColumnType = std::remove_cvref_t<decltype(column)>;
    append_column(*static_cast<ColumnType*>(columns[next++]), column, translate);
  };
  each_member(from, append);
}

Translation translate_names(Trace& to, const Trace& from) {
  Translation out;
  out.slices = static_cast<std::uint32_t>(to.slices.size());
  out.strings.reserve(from.strings.size());
  for (std::size_t i = 0; i < from.strings.size(); i++) {
    out.strings.push_back(to.strings.intern(from.strings[static_cast<StringId>(i)]));
  }
  for (const Category& category : from.categories) {
    const StringId name = out(category.name);
    const auto known = std::find_if(to.categories.begin(), to.categories.end(),
                                    [&](const Category& c) { return c.name == name && c.kind == category.kind; });
    out.categories.push_back(static_cast<CategoryId>(known - to.categories.begin()));
    if (known == to.categories.end()) to.categories.push_back({name, category.kind});
  }
  std::map<std::pair<StringId, StringId>, TrackId> lanes;
  for (std::size_t i = 0; i < to.tracks.size(); i++) {
    lanes.emplace(std::pair(to.tracks[i].process, to.tracks[i].thread), static_cast<TrackId>(i));
  }
  for (Track track : from.tracks) {
    for (StringId* id : {&track.process, &track.thread, &track.process_name, &track.thread_name}) *id = out(*id);
    const auto [lane, fresh] = lanes.try_emplace({track.process, track.thread}, static_cast<TrackId>(to.tracks.size()));
    if (fresh) to.tracks.push_back(track);
    Track& known = to.tracks[static_cast<std::size_t>(lane->second)];
    known.device = known.device || track.device;
    out.tracks.push_back(lane->second);
  }
  return out;
}

// Arrows are numbered from 1 in every recording.
void append_flows(Flows& to, const Flows& from, const Translation& translate) {
  std::int64_t last = 0;
  for (std::size_t row = 0; row < to.size(); row++) {
    if (to.id[row] < kTextId) last = std::max(last, to.id[row]);
  }
  for (std::size_t row = 0; row < from.size(); row++) {
    const std::int64_t id = from.id[row];
    if (id == kAbsent) {
      to.id.push_back(id);
    } else if (id >= kTextId && static_cast<std::size_t>(id - kTextId) < translate.strings.size()) {
      to.id.push_back(kTextId + static_cast<std::int64_t>(translate(static_cast<StringId>(id - kTextId))));
    } else {
      to.id.push_back(id + last);
    }
  }
  append_column(to.time_ns, from.time_ns, translate);
  append_column(to.track, from.track, translate);
  append_column(to.category, from.category, translate);
  append_column(to.phase, from.phase, translate);
}

void append_source(Trace& to, const Trace& from) {
  Source& source = to.source;
  if (source.parts.empty()) source.parts = {source.path};
  const auto part = static_cast<std::uint32_t>(source.parts.size());
  const auto instants = static_cast<std::uint32_t>(to.instants.size());
  const auto slices = static_cast<std::uint32_t>(to.slices.size());
  source.parts.push_back(from.source.path);
  for (PlaceBlock block : from.source.blocks) {
    block.first_slice += slices;
    block.first_instant += instants;
    block.part += part;
    source.blocks.push_back(block);
  }
  source.file_bytes += from.source.file_bytes;
  source.text_bytes += from.source.text_bytes;
  source.events += from.source.events;
}

// Each file may count from a base of its own.
class Clock {
 public:
  Clock(Trace& to, const Trace& from) {
    if (to.clock_base_ns == kAbsent || from.clock_base_ns == kAbsent) return;
    ahead_ns_ = from.clock_base_ns - to.clock_base_ns;
    for (Column<std::int64_t>* column : times_of(to)) columns_.push_back({column, column->size()});
  }
  void move_new_rows() const {
    if (ahead_ns_ == 0) return;
    for (const auto& [column, first] : columns_) {
      for (std::size_t row = first; row < column->size(); row++) (*column)[row] += ahead_ns_;
    }
  }

 private:
  static std::array<Column<std::int64_t>*, 5> times_of(Trace& t) {
    return {&t.slices.start_ns, &t.memory.time_ns, &t.flows.time_ns, &t.instants.time_ns, &t.counters.time_ns};
  }

  std::int64_t ahead_ns_ = 0;
  std::vector<std::pair<Column<std::int64_t>*, std::size_t>> columns_;
};

}  // namespace

void append_trace(Trace& to, const Trace& from) {
  const Clock clock(to, from);
  append_source(to, from);
  const Translation translate = translate_names(to, from);
  append_table(to.slices, from.slices, translate);
  append_table(to.ops, from.ops, translate);
  append_table(to.launches, from.launches, translate);
  append_table(to.device, from.device, translate);
  append_table(to.copy_speeds, from.copy_speeds, translate);
  append_table(to.collectives, from.collectives, translate);
  append_table(to.memory, from.memory, translate);
  append_table(to.instants, from.instants, translate);
  append_table(to.counters, from.counters, translate);
  append_flows(to.flows, from.flows, translate);
  clock.move_new_rows();
  if (to.devices.empty()) to.devices = from.devices;
  if (to.groups.empty()) to.groups = from.groups;
  if (to.held_before.empty()) to.held_before = from.held_before;
  if (to.module_sizes.empty()) to.module_sizes = from.module_sizes;
  if (to.code.empty()) to.code = from.code;
  to.issues.insert(to.issues.end(), from.issues.begin(), from.issues.end());
}

}  // namespace stepscope
