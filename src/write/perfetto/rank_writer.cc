#include "write/perfetto/rank_writer.h"

#include <algorithm>
#include <numeric>

#include "model/lookup.h"
#include "write/perfetto/field_writer.h"

namespace stepscope::write::perfetto {
namespace {

constexpr std::int64_t kTextId = std::int64_t{1} << 40;  // see Flows

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a ^ 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 31 ^ b) * 0x94D049BB133111EBu;
  return h ^ h >> 29;
}

}  // namespace

RankWriter::RankWriter(const Trace& trace, Place place, formats::OutFile& file, Numbers& numbers, RankNames names)
    : trace_(trace),
      place_(place),
      numbers_(numbers),
      names_(std::move(names)),
      packets_(file, trace.strings, static_cast<std::uint32_t>(place.index + 1),
               static_cast<std::uint64_t>(place.offset_ns)),
      lanes_(plan_lanes(trace, numbers)),
      source_(trace) {}

void RankWriter::write() {
  packets_.track([&](formats::ProtoWriter& out) {
    out.number(wire::track::uuid, lanes_.about);
    out.text(wire::track::name, names_("recording"));
  });
  about();
  describe_lanes(packets_, trace_, lanes_, numbers_, names_);
  bind_flows();
  for (std::size_t track = 0; track < trace_.tracks.size(); track++) slices(track);
  memory();
  loose_flows();
  instants();
  counters();
}

void RankWriter::slices(std::size_t track) {
  const auto end = [&](SliceId slice, std::uint32_t lane) {
    packets_.begin(wire::event::slice_end, lanes_.first[track] + lane);
    packets_.end(trace_.slices.end_ns(slice));
  };
  const auto begin = [&](SliceId slice, std::uint32_t lane) { begin_slice(slice, lanes_.first[track] + lane); };
  visit_lanes(trace_, track, {begin, end});
}

void RankWriter::begin_slice(SliceId slice, std::uint64_t track) {
  const std::int64_t start_ns = trace_.slices.start_ns[slice];
  packets_.begin(wire::event::slice_begin, track);
  packets_.name(trace_.slices.name[slice]);
  packets_.category(trace_, trace_.slices.category[slice]);
  packets_.annotations().number("slice", static_cast<std::int64_t>(slice));
  details(slice);
  if (const auto arguments = source_.arguments(slice); !arguments.empty()) {
    packets_.annotations().json("args", arguments);
  }
  const auto [first, last] = std::equal_range(flow_slices_.begin(), flow_slices_.end(), slice);
  const std::uint32_t* rows = flow_rows_.data();
  flows(rows + (first - flow_slices_.begin()), rows + (last - flow_slices_.begin()), start_ns);
  packets_.end(start_ns);
}

void RankWriter::details(SliceId slice) {
  Annotations& to = packets_.annotations();
  each_detail(trace_, [&](std::string_view word, const auto& table) {
    const std::size_t row = row_of(table.slice, slice);
    if (row == table.size()) return;
    to.begin_dict(word);
    each_field(table, RowWriter(to, row));
    to.end();
  });
}

// An arrow's number in the file: ids of a rank are distinct only within their category, and ranks share ids.
std::uint64_t RankWriter::flow_id(std::size_t row) const {
  const auto category = static_cast<std::uint64_t>(trace_.flows.category[row]);
  return mixed(place_.index << 16 | category, static_cast<std::uint64_t>(trace_.flows.id[row])) | 1;
}

void RankWriter::bind_flows() {
  const Flows& flows = trace_.flows;
  std::vector<SliceId> at(flows.size());
  for (std::size_t row = 0; row < at.size(); row++) at[row] = slice_at(trace_, flows.track[row], flows.time_ns[row]);
  flow_rows_.resize(at.size());
  std::iota(flow_rows_.begin(), flow_rows_.end(), 0);
  std::stable_sort(flow_rows_.begin(), flow_rows_.end(), [&](auto a, auto b) { return at[a] < at[b]; });
  for (const std::uint32_t row : flow_rows_) flow_slices_.push_back(at[row]);
}

// Perfetto draws arrows from slice to slice; row, time and id of each end stand beside, as they were recorded.
void RankWriter::flows(const std::uint32_t* begin, const std::uint32_t* end, std::int64_t event_ns) {
  if (begin == end) return;
  const Flows& flows = trace_.flows;
  for (const std::uint32_t* row = begin; row != end; row++) {
    packets_.event().fixed(flows.phase[*row] == 'f' ? wire::event::last_flows : wire::event::flows, flow_id(*row));
  }
  Annotations& to = packets_.annotations();
  to.begin_list("flows");
  for (const std::uint32_t* row = begin; row != end; row++) {
    const std::int64_t id = flows.id[*row];
    const CategoryId category = flows.category[*row];
    to.begin_item();
    to.number("flow", *row);
    to.number("phase", flows.phase[*row]);
    if (category != CategoryId::none) {
      to.text("category", trace_.categories[static_cast<std::size_t>(category)].name);
    }
    if (id >= kTextId && id - kTextId < static_cast<std::int64_t>(trace_.strings.size())) {
      to.text("id", static_cast<StringId>(id - kTextId));
    } else if (id != kAbsent) {
      to.number("id", id);
    }
    if (flows.time_ns[*row] != event_ns) to.number("after_ns", flows.time_ns[*row] - event_ns);
    to.end();
  }
  to.end();
}

// Ends at which nothing runs get an event of their own.
void RankWriter::loose_flows() {
  const auto first = std::lower_bound(flow_slices_.begin(), flow_slices_.end(), SliceId::none);
  for (auto at = first - flow_slices_.begin(); at < static_cast<std::ptrdiff_t>(flow_rows_.size()); at++) {
    const std::uint32_t* row = flow_rows_.data() + at;
    packets_.begin(wire::event::instant, lanes_.of(trace_.flows.track[*row]));
    packets_.name("flow");
    flows(row, row + 1, trace_.flows.time_ns[*row]);
    packets_.end(trace_.flows.time_ns[*row]);
  }
}

// What is allocated afterwards is a counter beside the event.
void RankWriter::memory() {
  const MemoryEvents& rows = trace_.memory;
  Annotations& to = packets_.annotations();
  for (std::size_t row = 0; row < rows.size(); row++) {
    packets_.begin(wire::event::instant, lanes_.of(rows.track[row]));
    packets_.name("[memory]");
    const auto total = [&](const NarrowColumn& column, bool is_reserved) {
      if (!column.has(row)) return;
      const std::uint64_t track = lanes_.memory.at({rows.device_type[row], rows.device_index[row], is_reserved});
      packets_.event().number(wire::event::extra_tracks, track);
      packets_.event().number(wire::event::extra_values, static_cast<std::uint64_t>(column[row]));
    };
    total(rows.total_allocated, false);
    total(rows.total_reserved, true);
    to.begin_dict("memory");
    each_field(rows, RowWriter(to, row));
    to.end();
    packets_.end(rows.time_ns[row]);
  }
}

void RankWriter::instants() {
  const Instants& rows = trace_.instants;
  for (std::size_t row = 0; row < rows.size(); row++) {
    packets_.begin(wire::event::instant, lanes_.of(rows.track[row]));
    packets_.name(rows.name[row]);
    packets_.category(trace_, rows.category[row]);
    packets_.end(rows.time_ns[row]);
  }
}

void RankWriter::counters() {
  const Counters& rows = trace_.counters;
  for (std::size_t row = 0; row < rows.size(); row++) {
    packets_.begin(wire::event::counter_sample, lanes_.counters.at({rows.track[row], rows.name[row], rows.key[row]}));
    packets_.event().real(wire::event::counter_real, rows.value[row]);
    packets_.end(rows.time_ns[row]);
  }
}

}  // namespace stepscope::write::perfetto
