// What can only be done when all packets were read: halves become slices, rows come into their order.
#include <algorithm>
#include <numeric>

#include "model/trace_members.h"
#include "read/perfetto/rank.h"

namespace stepscope::read::perfetto {
namespace {

// Keeps the rows `order` of every column that has any, in that order.
class TakeRows {
 public:
  explicit TakeRows(const std::vector<std::uint32_t>& order) : order_(order) {}

  template <class T>
  void operator()(Column<T>& column) {
    take<Column<T>>(column);
  }
  void operator()(NarrowColumn& column) { take<NarrowColumn>(column); }
  template <class T>
  void operator()(OptionalColumn<T>& column) {
    take<OptionalColumn<T>>(column);
  }

 private:
  template <class C>
  void take(C& column) {
    if (column.size() == 0) return;
    C taken;
    for (const std::uint32_t row : order_) taken.push_back(column[row]);
    column = std::move(taken);
  }

  const std::vector<std::uint32_t>& order_;
};

constexpr std::uint32_t kGone = 0xffffffff;

// `row_now` of slices: where they went.
template <class Table>
void order_details(Table& table, const std::vector<std::uint32_t>& row_now) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t row = 0; row < table.size(); row++) {
    const std::uint32_t now = row_now[static_cast<std::size_t>(table.slice[row])];
    table.slice[row] = static_cast<SliceId>(now);
    if (now != kGone) order.push_back(row);
  }
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return table.slice[a] < table.slice[b]; });
  TakeRows take(order);
  each_member(table, take);
}

}  // namespace

// Innermost first, as a stack; equal times keep the file's order.
void RankReader::pair_halves() {
  std::stable_sort(halves_.begin(), halves_.end(), [](const Half& a, const Half& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.time_ns < b.time_ns;
  });
  std::vector<const Half*> open;
  const auto give_up = [&](const Half& half) { defects_.note(Defect::unpaired, half.place); };
  for (std::size_t i = 0; i < halves_.size(); i++) {
    if (i > 0 && halves_[i].lane != halves_[i - 1].lane) {
      for (const Half* half : open) give_up(*half);
      open.clear();
    }
    if (halves_[i].row != kNoRow) {
      open.push_back(&halves_[i]);
    } else if (open.empty()) {
      give_up(halves_[i]);
    } else {
      durations_[open.back()->row] = halves_[i].time_ns - open.back()->time_ns;
      open.pop_back();
    }
  }
  for (const Half* half : open) give_up(*half);
  halves_ = {};
}

// Slices without an end are left out; the others come into the order of the trace that was written.
void RankReader::order_slices() {
  for (const std::int64_t dur_ns : durations_) trace_.slices.dur_ns.push_back(dur_ns);
  std::vector<std::uint32_t> order;
  bool is_whole = true;
  for (std::uint32_t row = 0; row < durations_.size(); row++) {
    if (durations_[row] != kAbsent) order.push_back(row);
    is_whole &= durations_[row] != kAbsent && (row == 0 || numbers_[row - 1] <= numbers_[row]);
  }
  if (is_whole) return;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return numbers_[a] < numbers_[b]; });
  std::vector<std::uint32_t> row_now(durations_.size(), kGone);
  for (std::uint32_t row = 0; row < order.size(); row++) row_now[order[row]] = row;
  TakeRows take(order);
  each_member(trace_.slices, take);
  each_detail(trace_, [&](std::string_view, auto& table) { order_details(table, row_now); });
  std::vector<std::uint64_t> places;
  for (const std::uint32_t row : order) places.push_back(places_[row]);
  places_ = std::move(places);
}

// A place is an offset from the start of its block; a block holds those within 4 GiB of its first.
void RankReader::set_places() {
  auto& blocks = trace_.source.blocks;
  const auto place = [&](std::uint64_t offset, std::size_t slice, std::size_t instant) {
    if (blocks.empty() || offset < blocks.back().offset || offset - blocks.back().offset > 0xffffffff) {
      blocks.push_back({static_cast<std::uint32_t>(slice), static_cast<std::uint32_t>(instant),
                        blocks.empty() && offset <= 0xffffffff ? 0 : offset});
    }
    return static_cast<std::uint32_t>(offset - blocks.back().offset);
  };
  for (std::size_t row = 0; row < places_.size(); row++) trace_.slices.place.push_back(place(places_[row], row, 0));
  for (std::size_t row = 0; row < instant_places_.size(); row++) {
    trace_.instants.place.push_back(place(instant_places_[row], places_.size(), row));
  }
}

void RankReader::order_flows() {
  std::stable_sort(flows_.begin(), flows_.end(), [](const FlowEnd& a, const FlowEnd& b) { return a.row < b.row; });
  Flows& flows = trace_.flows;
  for (const FlowEnd& end : flows_) {
    flows.time_ns.push_back(end.time_ns);
    flows.id.push_back(end.id);
    flows.track.push_back(end.track);
    flows.category.push_back(end.category);
    flows.phase.push_back(end.phase);
  }
}

void RankReader::name_foreign_tracks(const Descriptors& descriptors) {
  for (std::size_t i = 0; i < uuids_.size(); i++) trace_.tracks[i] = descriptors.track(uuids_[i], texts_);
  Counters& counters = trace_.counters;
  for (std::size_t row = 0; row < counters.size(); row++) {
    const Track& track = trace_.tracks[static_cast<std::size_t>(counters.track[row])];
    counters.name[row] = track.thread_name == StringId::none ? track.thread : track.thread_name;
    counters.key[row] = texts_("value");
  }
}

Trace RankReader::finish(const Descriptors& descriptors) {
  pair_halves();
  order_slices();
  set_places();
  order_flows();
  if (!is_own_) name_foreign_tracks(descriptors);
  defects_.note(Defect::repaired_text, 0, texts_.repaired());
  return std::move(trace_);
}

}  // namespace stepscope::read::perfetto
