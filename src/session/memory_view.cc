#include "session/memory_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "model/answer_parts.h"
#include "snapshot/compare.h"
#include "snapshot/curve.h"
#include "snapshot/free_memory.h"
#include "snapshot/growth_table.h"
#include "snapshot/holdings.h"

namespace stepscope::session {

using namespace snapshot;

namespace {

Error usage(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), "", std::nullopt, std::move(hint)};
}

Result<std::vector<View>> chosen_views(const Run& run, const MemoryView& view) {
  std::vector<View> views = views_of(run);
  if (views.empty()) {
    const auto is_timeline = [](const Trace& trace) { return trace.memory_timeline.size() > 0; };
    if (std::any_of(run.snapshots.begin(), run.snapshots.end(), is_timeline)) {
      return fail({ErrorKind::unsupported,
                   "holds a memory timeline: bytes by category over time, with no blocks, stacks or events", run.path,
                   std::nullopt,
                   "Ask without options that name a moment: stepscope memory PATH. For blocks record snapshots: "
                   "stepscope run --memory-history"});
    }
    if (!run.snapshots.empty()) {
      return fail({ErrorKind::unsupported, "holds a memory snapshot in which nothing was recorded", run.path,
                   std::nullopt, "Record with stepscope run --memory-history, in the process that uses the GPU"});
    }
    return fail({ErrorKind::unsupported, "holds no memory snapshot", run.path, std::nullopt,
                 "Record some with stepscope run --memory-history, or torch.cuda.memory._dump_snapshot"});
  }
  std::erase_if(views, [&](const View& one) {
    return (view.rank && one.trace->rank.rank != *view.rank) || (view.device && one.device->number != *view.device);
  });
  if (views.empty())
    return fail(usage("no snapshot is of that rank and device", "See stepscope memory PATH for what there is"));
  return views;
}

Result<std::uint32_t> moment_of(const View& one, const MemoryView& view) {
  const SnapshotDevice& device = *one.device;
  const std::string about = "the recording of rank " + std::to_string(one.trace->rank.rank) + " " + one.device_name();
  switch (view.kind) {
    case MomentKind::peak: return device.peak;
    case MomentKind::end: return device.last_moment();
    case MomentKind::event:
      if (view.number >= 0 && view.number < std::int64_t{device.events.count})
        return static_cast<std::uint32_t>(view.number) + 1;
      return fail(usage("no event " + std::to_string(view.number) + " in " + about,
                        "It has " + std::to_string(device.events.count) + " events, counted from 0"));
    case MomentKind::oom:
      if (view.number >= 1 && view.number <= static_cast<std::int64_t>(device.ooms.size()))
        return device.ooms[static_cast<std::size_t>(view.number) - 1];
      if (device.ooms.empty()) return fail(usage("memory never ran out in " + about, "See its peak: --peak"));
      return fail(usage(
          "memory ran out fewer than " + std::to_string(view.number) + " times in " + about,
          device.ooms.size() == 1 ? "It did once: --oom 1" : "Name one of 1 to " + std::to_string(device.ooms.size())));
    case MomentKind::time: break;
  }
  constexpr double kUnixFrom = 1e9;  // s; no recording is 30 years long
  const std::int64_t first = time_of(one.snapshot(), device, 0);
  if (first == kNotRecorded) return fail(usage("no times were recorded in " + about, "Name an event: --at EVENT"));
  const double start_us = view.seconds >= kUnixFrom ? 0 : static_cast<double>(first) / 1000;
  const double time_us = std::min(start_us + view.seconds * 1e6, 9e18);
  return moment_at(one.snapshot(), device, static_cast<std::int64_t>(std::llround(time_us)));
}

std::string moment_words(const MemoryView& view) {
  switch (view.kind) {
    case MomentKind::peak: return "the peak";
    case MomentKind::end: return "the end";
    case MomentKind::event: return "event " + std::to_string(view.number);
    case MomentKind::oom: return "the moment when memory ran out";
    case MomentKind::time: break;
  }
  return "that time";
}

Table moment_table() {
  return table_of(
      "moment", {{"event", ValueType::integer, Unit::none, "Number of the event before it; unknown: before all events"},
                 {"t_ns", ValueType::integer, Unit::unix_ns, "When that was"},
                 {"step", ValueType::text, Unit::none, "Step at that time"},
                 {"range", ValueType::text, Unit::none, "Innermost range of the program at that time"},
                 {"bytes", ValueType::integer, Unit::bytes, "Alive, as the program asked for it"},
                 {"block_bytes", ValueType::integer, Unit::bytes, "What that takes of the allocator's memory"},
                 {"pending_bytes", ValueType::integer, Unit::bytes, "Of that, freed and still used by a stream"},
                 {"reserved_bytes", ValueType::integer, Unit::bytes,
                  "What the allocator holds from the device; unknown: by the events more lives"},
                 {"free_bytes", ValueType::integer, Unit::bytes, "Free inside its segments"},
                 {"largest_run_bytes", ValueType::integer, Unit::bytes, "The largest piece of that"},
                 {"blocks", ValueType::integer, Unit::count, "Allocations alive"},
                 {"segments", ValueType::integer, Unit::count, "Segments that the allocator holds"},
                 {"unknown_share", ValueType::real, Unit::ratio, "Share of the bytes of which nothing is known"}});
}

std::vector<Value> moment_row(const View& one, const State& state, const HeldShares& shares) {
  const LiveBytes live = live_bytes(one.history(), state);
  const FreeMemory memory = free_memory(one.history(), state, std::nullopt);
  const bool known = one.device->ranges.count > 0 && fit_together(memory, live);
  return row_of(
      one, {moment_event(one, state.moment), moment_time(one, state.moment), moment_step(one, state.moment),
            moment_range(one, state.moment), live.asked, live.blocks, live.pending, value_if(known, memory.reserved),
            value_if(known, memory.free), value_if(known, memory.largest_run), count(state.rows.size()),
            known ? count(state.segments.size()) : Value(), share(shares.unknown, shares.bytes)});
}

// The last snapshot of each rank and device.
std::map<std::pair<std::int64_t, std::int64_t>, View> by_place(const std::vector<View>& views) {
  std::map<std::pair<std::int64_t, std::int64_t>, View> all;
  for (const View& view : views) all.insert_or_assign({view.trace->rank.rank, view.device->number}, view);
  return all;
}

Result<std::uint32_t> boundary(const View& one, const std::string& word, std::uint32_t otherwise) {
  if (word.empty()) return otherwise;
  std::int64_t event = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), event);
  if (error == std::errc() && end == word.data() + word.size()) {
    return moment_of(one, {.kind = MomentKind::event, .number = event});
  }
  for (const SnapshotStep& step : one.device->steps) {
    if (step.name == word) return step.end;
  }
  std::string known;
  for (const SnapshotStep& step : one.device->steps) {
    if (known.size() < 200) known += (known.empty() ? "" : ", ") + step.name;
  }
  return fail(usage("'" + word + "' is neither the number of an event nor the name of a step",
                    known.empty() ? "No steps are marked in the recording" : "Its steps are " + known));
}

Table difference_table(const char* name, const char* what) {
  return {.name = name,
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank of both"},
                      {"device", ValueType::text, Unit::none, "Device of both"},
                      {what, ValueType::text, Unit::none, "What is compared"},
                      {"change_bytes", ValueType::integer, Unit::bytes, "B less A"},
                      {"a_bytes", ValueType::integer, Unit::bytes, "Alive in A"},
                      {"b_bytes", ValueType::integer, Unit::bytes, "Alive in B"},
                      {"change_blocks", ValueType::integer, Unit::count, "Allocations more in B"},
                      {"class", ValueType::text, Unit::none, "Class of most of its bytes"},
                      {"pairing", ValueType::text, Unit::none,
                       "same stack; lines moved: the same functions on other lines; only in A; only in B"}},
          .rows = {}};
}

void add_pair(Table& table, const View& one, const Pair& pair, bool by_stack) {
  const auto bytes = [](const Group* group) { return group == nullptr ? std::int64_t{0} : group->bytes; };
  const auto blocks = [](const Group* group) {
    return group == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(group->blocks);
  };
  const Group& any = pair.second != nullptr ? *pair.second : *pair.first;
  std::vector<Value> row{one.trace->rank.rank,
                         one.device_name(),
                         text(any.name),
                         pair.change(),
                         bytes(pair.first),
                         bytes(pair.second),
                         blocks(pair.second) - blocks(pair.first)};
  if (by_stack) row.insert(row.end(), {text(any.of_class), text(to_string(pair.how))});
  table.rows.push_back(std::move(row));
}

// Groups whose names say the same on both sides.
std::vector<Pair> paired_by_name(const std::vector<Group>& first, const std::vector<Group>& second) {
  std::map<std::string, Pair> by_name;
  for (const Group& group : first) by_name[group.name].first = &group;
  for (const Group& group : second) by_name[group.name].second = &group;
  std::vector<Pair> pairs;
  for (const auto& [name, pair] : by_name) pairs.push_back(pair);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return std::abs(a.change()) > std::abs(b.change()); });
  return pairs;
}

struct Side {
  View view;
  State state;

  std::vector<Group> groups(GroupBy by) const {
    return grouped(view.snapshot(), view.history(), *view.device, state, by);
  }
};

void compare(const Side& a, const Side& b, Table& classes, Table& stacks, std::int64_t& change) {
  const std::vector<Group> first = a.groups(GroupBy::of_class), second = b.groups(GroupBy::of_class);
  for (const Pair& pair : paired_by_name(first, second)) {
    add_pair(classes, b.view, pair, false);
    change += pair.change();
  }
  const std::vector<Group> from = a.groups(GroupBy::stack), to = b.groups(GroupBy::stack);
  for (const Pair& pair : paired(a.view, from, b.view, to)) {
    if (pair.change() != 0) add_pair(stacks, b.view, pair, true);
  }
}

void cut_tables(Answer& answer, std::size_t limit) {
  for (Table& table : answer.tables) limit_rows(answer, table, limit, "those behind");
}

}  // namespace

std::vector<std::string_view> memory_groups() { return group_names(); }

Result<Answer> memory_at(const Run& run, const MemoryView& view) {
  const auto views = chosen_views(run, view);
  if (!views) return fail(views.error());
  Answer answer;
  Table moments = moment_table();
  ToldStacks told;
  Holdings holdings("held", false, view.limit);
  std::vector<Table> grouped_tables;
  const auto by = group_named(view.by);
  for (const View& one : *views) {
    const auto moment = moment_of(one, view);
    if (!moment) return fail(moment.error());
    const State state = state_at(one.history(), *one.device, *moment);
    if (view.kind == MomentKind::peak && one.device->events.count == 0) {
      answer.notes.push_back("No events of " + one.device_name() +
                             " were recorded, so its peak is unknown: this is the end.");
    }
    if (by) {
      Table table = holdings.by(one, state, *by, told);
      if (grouped_tables.empty()) {
        grouped_tables.push_back(std::move(table));
      } else {
        std::move(table.rows.begin(), table.rows.end(), std::back_inserter(grouped_tables.front().rows));
      }
    }
    moments.rows.push_back(moment_row(one, state, holdings.add(one, state, told)));
  }
  answer.tables.push_back(std::move(moments));
  if (by) {
    answer.tables.push_back(std::move(grouped_tables.front()));
  } else {
    holdings.take(answer);
  }
  cut_tables(answer, view.limit);
  answer.tables.push_back(told.table());
  return titled(std::move(answer), "moment", "What does memory hold at " + moment_words(view) + "?");
}

Result<Answer> memory_between(const Run& run, const MemoryView& view) {
  const auto views = chosen_views(run, view);
  if (!views) return fail(views.error());
  Answer answer;
  Table growth = growth_table("growth");
  ToldStacks told;
  for (const View& one : *views) {
    const auto from = boundary(one, view.from, 0), to = boundary(one, view.to, one.device->last_moment());
    if (!from) return fail(from.error());
    if (!to) return fail(to.error());
    if (*from >= *to) return fail(usage("--from lies at or behind --to", "Name an earlier event or step for --from"));
    const std::vector<std::uint32_t> moments{*from, *to};
    const auto all = growth_by_stack(one.history(), *one.device, moments);
    add_growth_rows(growth, one, moments, all, std::numeric_limits<std::size_t>::max(), told);
  }
  answer.tables.push_back(std::move(growth));
  cut_tables(answer, view.limit);
  answer.tables.push_back(told.table());
  return titled(std::move(answer), "growth", "What lives at the later moment and did not at the earlier one?");
}

Result<Answer> memory_against(const Run& a, const Run& b, const MemoryView& view) {
  const auto before = chosen_views(a, view), after = chosen_views(b, view);
  if (!before) return fail(before.error());
  if (!after) return fail(after.error());
  const auto first = by_place(*before), second = by_place(*after);
  Answer answer;
  Table classes = difference_table("classes_changed", "class"), stacks = difference_table("stacks_changed", "where");
  std::int64_t change = 0;
  std::size_t pairs = 0;
  for (const auto& [place, one] : first) {
    // Two single snapshots are compared whatever their ranks are called.
    const auto other = first.size() == 1 && second.size() == 1 ? second.begin() : second.find(place);
    if (other == second.end()) {
      answer.notes.push_back("Rank " + std::to_string(place.first) + " " + one.device_name() + " is only in A.");
      continue;
    }
    const auto moment = moment_of(one, view), other_moment = moment_of(other->second, view);
    if (!moment) return fail(moment.error());
    if (!other_moment) return fail(other_moment.error());
    compare({one, state_at(one.history(), *one.device, *moment)},
            {other->second, state_at(other->second.history(), *other->second.device, *other_moment)}, classes, stacks,
            change);
    pairs++;
  }
  for (const auto& [place, one] : second) {
    if (first.size() == 1 && second.size() == 1) break;
    if (!first.contains(place))
      answer.notes.push_back("Rank " + std::to_string(place.first) + " " + one.device_name() + " is only in B.");
  }
  if (pairs == 0) return fail(usage("no rank and device is in both", "Name two snapshots: --diff OTHER.pickle"));
  classes.columns.resize(classes.columns.size() - 2);  // of stacks
  add_scalar(answer, "change_bytes", change, Unit::bytes, "What lives more in B at " + moment_words(view));
  answer.tables.push_back(std::move(classes));
  answer.tables.push_back(std::move(stacks));
  cut_tables(answer, view.limit);
  return titled(std::move(answer), "memory_diff", "What does B hold at " + moment_words(view) + " that A does not?");
}

}  // namespace stepscope::session
