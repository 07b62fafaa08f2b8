// The last part of assembling: what can only be known when all text was read.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "formats/json_text.h"
#include "read/chrome_trace/assembler.h"

namespace stepscope::read::chrome_trace {
namespace {

struct IssueText {
  const char* code;
  Severity severity;
  const char* sentence;
  const char* advice;
};

// In the order of Defect.
constexpr std::array<IssueText, static_cast<std::size_t>(Defect::count_)> kDefects{{
    {"missing_duration", Severity::lost, "complete events (X) without a usable duration were left out", ""},
    {"missing_time", Severity::lost, "events without a usable timestamp were left out", ""},
    {"missing_name", Severity::info, "events without a name are shown without one", ""},
    {"missing_kind", Severity::lost, "events without a kind (ph) were left out", ""},
    {"missing_category", Severity::info, "slices without a category (cat): what kind of work they are is unknown", ""},
    {"negative_duration", Severity::repaired, "negative durations were set to 0", ""},
    {"duplicate_key", Severity::repaired, "a key stood twice in an event; the last value was taken", ""},
    {"unknown_event_kind", Severity::info, "events of a kind that is not shown (samples, objects, memory dumps)", ""},
    {"wide_number", Severity::repaired, "integers of more than 64 bits were taken as not given; their text is kept",
     ""},
    {"bad_number", Severity::repaired, "fields that should hold a number hold something else; taken as not given", ""},
}};

// In the order of Damage.
constexpr std::array<IssueText, static_cast<std::size_t>(Damage::count_)> kDamage{{
    {"cut_inside_event", Severity::lost, "the text ends inside an event; everything before it was read",
     "Record again if the end matters: the job or the export was stopped while writing"},
    {"broken_event", Severity::lost, "events whose JSON could not be understood were left out", ""},
    {"lost_bytes", Severity::lost, "bytes between events belong to none and were skipped", ""},
    {"missing_comma", Severity::repaired, "commas were missing", ""},
    {"extra_comma", Severity::repaired, "commas too many", ""},
    {"bare_word", Severity::repaired, "values that are no JSON (NaN, N/A, bare words) were taken as text", ""},
    {"empty_value", Severity::repaired, "empty values were taken as not given", ""},
    {"inner_quote", Severity::repaired, "unescaped quotes inside texts were kept as part of the text", ""},
}};

Issue issue(const IssueText& text, const Tally& tally, const std::string& file) {
  return {text.code, text.severity, text.sentence, text.advice, tally.count, file, tally.first_offset, std::nullopt};
}

}  // namespace

void Assembler::finish(const DamageTally& damage) {
  pair_halves();
  for (std::size_t i = 0; i < metadata_.size(); i++) apply_metadata(metadata_[static_cast<StringId>(i)]);
  name_processes();
  mark_device_tracks();
  note_zero_durations();
  drop_zero_times();
  report(damage);
}

// Begin and end halves of a track are paired by time, innermost first; equal times keep the file's order.
void Assembler::pair_halves() {
  if (halves_.empty()) return;
  std::stable_sort(halves_.begin(), halves_.end(), [](const Half& a, const Half& b) {
    return a.track != b.track ? a.track < b.track : a.time_ns < b.time_ns;
  });
  Slices& s = trace_.slices;
  std::vector<std::size_t> open;
  Tally unpaired;
  std::vector<std::pair<std::size_t, std::int64_t>> pairs;  // (begin half, end time)
  const auto give_up = [&](const Half& half) {
    if (unpaired.count++ == 0 || half.place < unpaired.first_offset) unpaired.first_offset = half.place;
  };
  for (std::size_t i = 0; i < halves_.size(); i++) {
    if (i > 0 && halves_[i].track != halves_[i - 1].track) {
      for (const std::size_t each : open) give_up(halves_[each]);
      open.clear();
    }
    if (halves_[i].begin) {
      open.push_back(i);
    } else if (open.empty()) {
      give_up(halves_[i]);
    } else {
      pairs.emplace_back(open.back(), halves_[i].time_ns);
      open.pop_back();
    }
  }
  for (const std::size_t each : open) give_up(halves_[each]);
  // Rows of these slices are in the order of their begin's place in the text; each 4 GiB of text is a block.
  std::sort(pairs.begin(), pairs.end(),
            [&](auto& a, auto& b) { return halves_[a.first].place < halves_[b.first].place; });
  for (const auto& [begin, end_ns] : pairs) {
    const Half& half = halves_[begin];
    const std::uint64_t block = half.place >> 32 << 32;
    if (begin == pairs.front().first || trace_.source.blocks.back().offset != block) {
      trace_.source.blocks.push_back(
          {static_cast<std::uint32_t>(s.size()), static_cast<std::uint32_t>(trace_.instants.size()), block});
    }
    s.start_ns.push_back(half.time_ns);
    s.dur_ns.push_back(end_ns - half.time_ns);
    s.name.push_back(static_cast<StringId>(half.name));
    s.track.push_back(static_cast<TrackId>(half.track));
    s.category.push_back(static_cast<CategoryId>(half.category));
    s.place.push_back(static_cast<std::uint32_t>(half.place - block));
  }
  halves_ = {};
  if (unpaired.count > 0) {
    trace_.issues.push_back({"unpaired_begin_end", Severity::lost,
                             "begin (B) or end (E) events without their other half were left out", "", unpaired.count,
                             trace_.source.path, unpaired.first_offset, std::nullopt});
  }
}

// process_name, thread_name, thread_sort_index … of one "M" event.
void Assembler::apply_metadata(std::string_view event) {
  std::string name, process, thread, text;
  long long sort_index = 0;
  bool has_sort = false, has_thread = false;
  for (const auto& [key, raw_key, value] : formats::members(event)) {
    if (key == "name") name = formats::value_text(value);
    if (key == "pid") process = formats::value_text(value);
    if (key == "tid") {
      thread = formats::value_text(value);
      has_thread = true;
    }
    if (key != "args" || value.empty() || value.front() != '{') continue;
    for (const auto& [inner, raw_inner, content] : formats::members(value)) {
      if (inner == "name" || inner == "labels") text = formats::value_text(content);
      if (inner == "sort_index") {
        sort_index = formats::value_int(content, 0);
        has_sort = true;
      }
    }
  }
  const StringId process_id = trace_.strings.find(process);
  if (process_id == StringId::none) return;
  if (name == "process_name") process_names_[process_id] = text;
  const StringId thread_id = has_thread ? trace_.strings.find(thread) : StringId::none;
  const auto found = track_index_.find(track_key(process_id, thread_id));
  if (found == track_index_.end()) return;
  Track& track = trace_.tracks[static_cast<std::size_t>(found->second)];
  if (name == "thread_name") track.thread_name = trace_.strings.intern(text);
  if (name == "thread_sort_index" && has_sort) track.sort_index = sort_index;
}

void Assembler::name_processes() {
  for (Track& track : trace_.tracks) {
    const auto named = process_names_.find(track.process);
    if (named != process_names_.end()) track.process_name = trace_.strings.intern(named->second);
  }
}

void Assembler::mark_device_tracks() {
  const Slices& s = trace_.slices;
  for (std::size_t row = 0; row < trace_.device.size(); row++) {
    trace_.tracks[static_cast<std::size_t>(s.track[trace_.device.slice[row]])].device = true;
  }
  for (std::size_t i = 0; i < s.size(); i++) {
    if (trace_.kind(static_cast<SliceId>(i)) == SliceKind::gpu_user_annotation) {
      trace_.tracks[static_cast<std::size_t>(s.track[i])].device = true;
    }
  }
}

// Some profilers write device events with timestamp 0 when the device gave none. One such event would stretch the
// span over decades, so their rows are taken out of the device table (the slice itself stays, with duration 0 at the
// trace's start).
void Assembler::drop_zero_times() {
  DeviceRows& d = trace_.device;
  Slices& s = trace_.slices;
  std::int64_t earliest = INT64_MAX;
  for (std::size_t row = 0; row < d.size(); row++) {
    const std::int64_t start = s.start_ns[d.slice[row]];
    if (start > 0) earliest = std::min(earliest, start);
  }
  if (earliest == INT64_MAX || earliest < 1'000'000'000) return;  // a clock that starts near 0 may well show 0
  std::uint64_t zero = 0;
  std::optional<std::uint64_t> first;
  for (std::size_t row = 0; row < d.size(); row++) {
    const SliceId slice = d.slice[row];
    if (s.start_ns[slice] > 0) continue;
    if (zero++ == 0) first = offset_of(slice);
    s.start_ns[slice] = earliest;
    s.dur_ns.set(slice, 0);
  }
  if (zero > 0) {
    trace_.issues.push_back(
        {"zero_timestamp", Severity::lost,
         "device events with timestamp 0 were given no duration and set to the start of device work",
         "Record again with a newer driver or profiler: their times were never written", zero, trace_.source.path,
         first, std::nullopt});
  }
}

std::uint64_t Assembler::offset_of(SliceId slice) const {
  const auto& blocks = trace_.source.blocks;
  const auto block = std::upper_bound(blocks.begin(), blocks.end(), static_cast<std::uint32_t>(slice),
                                      [](std::uint32_t row, const PlaceBlock& b) { return row < b.first_slice; });
  return (block == blocks.begin() ? 0 : std::prev(block)->offset) + trace_.slices.place[slice];
}

// Work that took no time at all was not measured: newer drivers write it when their buffers ran over.
void Assembler::note_zero_durations() {
  std::uint64_t zero = 0;
  std::optional<std::uint64_t> first;
  for (std::size_t row = 0; row < trace_.device.size(); row++) {
    const SliceId slice = trace_.device.slice[row];
    if (trace_.slices.dur_ns[slice] != 0 || !is_device_work(trace_.kind(slice))) continue;
    if (zero++ == 0) first = offset_of(slice);
  }
  if (zero == 0) return;
  add_issue(trace_.issues, {"zero_duration", Severity::info, "kernels, copies or fills with a duration of 0", "", zero,
                            trace_.source.path, first, std::nullopt});
}

void Assembler::report(const DamageTally& damage) {
  const std::string& file = trace_.source.path;
  for (std::size_t i = 0; i < damage.size(); i++) {
    if (damage[i].count > 0) add_issue(trace_.issues, issue(kDamage[i], damage[i], file));
  }
  for (std::size_t i = 0; i < std::size(defects_); i++) {
    if (defects_[i].count > 0) add_issue(trace_.issues, issue(kDefects[i], defects_[i], file));
  }
  if (repaired_.size() > 0) {
    add_issue(trace_.issues, {"repaired_text", Severity::repaired,
                              "texts with control bytes, invalid UTF-8 or bad escapes are shown with \\xNN or U+FFFD",
                              "", repaired_.size(), file, std::nullopt, std::nullopt});
  }
  if (trace_.source.events == 0) {
    add_issue(trace_.issues, {"no_events", Severity::info, "the file holds no events",
                              "Check that the profiler ran while the job worked (schedule, warm-up, export)", 1, file,
                              std::nullopt, std::nullopt});
  } else if (trace_.slices.size() + trace_.instants.size() + trace_.counters.size() + trace_.memory.size() +
                 trace_.flows.size() ==
             0) {
    add_issue(trace_.issues, {"nothing_recorded", Severity::info, "none of the events says what ran when",
                              "Check that the profiler ran while the job worked (schedule, warm-up, export)",
                              trace_.source.events, file, std::nullopt, std::nullopt});
  }
}

}  // namespace stepscope::read::chrome_trace
