#include "read/perfetto/rank.h"

#include <algorithm>

namespace stepscope::read::perfetto {
namespace {

constexpr std::int64_t kLatest = std::int64_t{1} << 62;  // sums of later times would overflow
constexpr std::int64_t kTextId = std::int64_t{1} << 40;  // see Flows

bool is_phase(std::int64_t phase) { return phase == 's' || phase == 't' || phase == 'f'; }

}  // namespace

// none: a track of ours that is not described.
TrackId RankReader::track_of(std::uint64_t uuid) {
  if (is_own_) {
    const auto after = std::upper_bound(lanes_.begin(), lanes_.end(), uuid,
                                        [](std::uint64_t value, const Lanes& lanes) { return value < lanes.first; });
    if (after == lanes_.begin() || uuid - (after - 1)->first >= (after - 1)->count) return TrackId::none;
    return (after - 1)->track;
  }
  const auto [known, is_new] = tracks_.try_emplace(uuid, static_cast<TrackId>(trace_.tracks.size()));
  if (is_new) {
    trace_.tracks.emplace_back();
    uuids_.push_back(uuid);
  }
  return known->second;
}

CategoryId RankReader::category_of(std::string_view name) {
  const auto [known, is_new] = categories_.try_emplace(std::string(name), CategoryId::none);
  if (is_new && trace_.categories.size() < static_cast<std::size_t>(CategoryId::none)) {
    known->second = static_cast<CategoryId>(trace_.categories.size());
    trace_.categories.push_back({texts_(name), slice_kind(name)});
  }
  return known->second;
}

void RankReader::take(const Event& event, const Sequence& sequence, std::uint64_t told_ns, std::uint64_t place,
                      Descriptors& descriptors) {
  trace_.source.events++;
  const auto time_ns = static_cast<std::int64_t>(told_ns - offset_ns_);
  defects_.note(Defect::unknown_text, place, event.unknown_texts);
  if (time_ns <= (is_own_ ? -kLatest : -1) || time_ns >= kLatest) return defects_.note(Defect::missing_time, place);
  if (!is_own_) {
    for (const auto& [uuid, value] : event.extra_counters) counter(uuid, value, time_ns, place, descriptors);
  }
  if (event.type == wire::event::counter_sample) {
    if (event.counter) counter(event.track, *event.counter, time_ns, place, descriptors);
    return;
  }
  if (event.type < wire::event::slice_begin || event.type > wire::event::instant) {
    return defects_.note(Defect::unknown_kind, place);
  }
  const TrackId track = track_of(event.track);
  if (track == TrackId::none) return defects_.note(Defect::unknown_track, place);
  switch (event.type) {
    case wire::event::slice_begin: return begin(event, sequence, time_ns, place, track);
    case wire::event::slice_end: return halves_.push_back({event.track, time_ns, place, kNoRow});
    default: return instant(event, sequence, time_ns, place, track);
  }
}

void RankReader::begin(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                       TrackId track) {
  Slices& slices = trace_.slices;
  halves_.push_back({event.track, time_ns, place, static_cast<std::uint32_t>(slices.size())});
  std::int64_t row = static_cast<std::int64_t>(slices.size());
  if (is_own_) {
    row = take_details(event, sequence, time_ns, place, track);
  } else {
    foreign_flows(event, time_ns, track);
  }
  slices.start_ns.push_back(time_ns);
  slices.name.push_back(name_of(event));
  slices.track.push_back(track);
  slices.category.push_back(event.has_category ? category_of(event.category) : CategoryId::none);
  durations_.push_back(kAbsent);
  numbers_.push_back(row);
  places_.push_back(place);
}

// Appends the rows of the slice that is about to be added; returns the row that it had.
std::int64_t RankReader::take_details(const Event& event, const Sequence& sequence, std::int64_t time_ns,
                                      std::uint64_t place, TrackId track) {
  const auto slice = static_cast<SliceId>(trace_.slices.size());
  std::int64_t row = static_cast<std::int64_t>(slice);
  bool ok = true;
  std::uint64_t unknown = 0;
  for (const std::string_view annotation : event.annotations) {
    const Value value = read_value(annotation, sequence, ok, unknown);
    if (value.name == "slice") row = value.number;
    if (value.name == "flows") take_flows(value, sequence, time_ns, place, track);
    if (value.kind != Value::Kind::dict && value.kind != Value::Kind::none) continue;  // none: a row of nothing
    each_detail(trace_, [&](std::string_view word, auto& table) {
      if (value.name != word || (table.size() > 0 && table.slice[table.size() - 1] == slice)) return;
      Fields fields(value, sequence, ok, unknown);
      table.slice.push_back(slice);
      each_field(table, RowReader(fields, texts_));
    });
  }
  defects_.note(Defect::unknown_text, place, unknown);
  defects_.note(Defect::bad_details, place, ok ? 0 : 1);
  return row;
}

void RankReader::take_flows(const Value& list, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                            TrackId track) {
  if (list.kind != Value::Kind::list) return;
  bool ok = true;
  std::uint64_t unknown = 0;
  each_entry(list, sequence, ok, unknown, [&](const Value& item) {
    Fields fields(item, sequence, ok, unknown);
    const std::int64_t phase = fields.number("phase", 0), after_ns = fields.number("after_ns", 0);
    if (!is_phase(phase) || after_ns <= -kLatest || after_ns >= kLatest) {
      ok = false;
      return;
    }
    const auto text_id = fields.text("id");
    const std::int64_t id =
        text_id ? kTextId + static_cast<std::int64_t>(texts_(*text_id)) : fields.number("id", kAbsent);
    const auto category = fields.text("category");
    flows_.push_back({fields.number("flow", 0), time_ns + after_ns, id, track,
                      category ? category_of(*category) : CategoryId::none, static_cast<char>(phase)});
  });
  defects_.note(Defect::unknown_text, place, unknown);
  defects_.note(Defect::bad_details, place, ok ? 0 : 1);
}

// Arrows of another writer are numbered as they come: its numbers are any 64 bits, and may be used again after an end.
void RankReader::foreign_flows(const Event& event, std::int64_t time_ns, TrackId track) {
  const auto add = [&](std::int64_t id, char phase) {
    flows_.push_back({static_cast<std::int64_t>(flows_.size()), time_ns, id, track, CategoryId::none, phase});
  };
  for (const std::uint64_t flow : event.flows) {
    const auto [open, is_new] = open_flows_.try_emplace(flow, last_flow_ + 1);
    if (is_new) last_flow_++;
    add(open->second, is_new ? 's' : 't');
  }
  for (const std::uint64_t flow : event.last_flows) {
    const auto open = open_flows_.find(flow);
    add(open == open_flows_.end() ? ++last_flow_ : open->second, 'f');
    if (open != open_flows_.end()) open_flows_.erase(open);
  }
}

void RankReader::instant(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                         TrackId track) {
  if (is_own_ && take_own_instant(event, sequence, time_ns, place, track)) return;
  if (!is_own_) foreign_flows(event, time_ns, track);
  Instants& instants = trace_.instants;
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(name_of(event));
  instants.track.push_back(track);
  instants.category.push_back(event.has_category ? category_of(event.category) : CategoryId::none);
  instant_places_.push_back(place);
}

// True: a row of memory_events, or ends of arrows at which nothing runs.
bool RankReader::take_own_instant(const Event& event, const Sequence& sequence, std::int64_t time_ns,
                                  std::uint64_t place, TrackId track) {
  bool ok = true;
  std::uint64_t unknown = 0;
  for (const std::string_view annotation : event.annotations) {
    const Value value = read_value(annotation, sequence, ok, unknown);
    if (value.name == "flows") {
      take_flows(value, sequence, time_ns, place, track);
      return true;
    }
    if (value.name != "memory") continue;
    Fields fields(value, sequence, ok, unknown);
    trace_.memory.time_ns.push_back(time_ns);
    trace_.memory.track.push_back(track);
    each_field(trace_.memory, RowReader(fields, texts_));
    defects_.note(Defect::bad_details, place, ok ? 0 : 1);
    return true;
  }
  return false;
}

void RankReader::add_counter(std::int64_t time_ns, const CounterOf& of, double value) {
  Counters& counters = trace_.counters;
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(of.name);
  counters.key.push_back(of.key);
  counters.track.push_back(of.track);
  counters.value.push_back(value);
}

void RankReader::counter(std::uint64_t uuid, double value, std::int64_t time_ns, std::uint64_t place,
                         Descriptors& descriptors) {
  if (!is_own_) {  // names are known at the end
    return add_counter(time_ns, {track_of(uuid), StringId::none, StringId::none},
                       descriptors.counter_value(uuid, value));
  }
  const auto known = counters_.find(uuid);
  if (known == counters_.end()) return defects_.note(Defect::unknown_track, place);
  add_counter(time_ns, known->second, value);
}

}  // namespace stepscope::read::perfetto
