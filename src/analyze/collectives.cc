// collectives: each process group and each kind of call over all ranks: how much of it is transfer, how much is waiting
// for the rank that comes last, and how fast the transfer is.
//
// Calls are matched over ranks (see model/matches.h). Bandwidth takes the transfer alone where all ranks of the group
// were opened; else the shortest duration at hand still holds some waiting, so it is a lower bound and is called so.
// `communication` answers what is hidden behind compute.
#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/collective_work.h"
#include "model/match_times.h"

namespace stepscope::analyze {
namespace {

std::string_view dtype_of(const Run& run, const MatchMember& member) {
  if (member.collective == MatchMember::kNone) return {};
  const Trace& trace = run.traces[member.trace];
  return trace.strings[trace.collectives.dtype[member.collective]];
}

std::string_view call_name(const Run& run, const MatchMember& member) {
  const Trace& trace = run.traces[member.trace];
  if (member.collective != MatchMember::kNone) return trace.strings[trace.collectives.kind[member.collective]];
  return member.device_row == MatchMember::kNone ? std::string_view()
                                                 : trace.name(trace.device.slice[member.device_row]);
}

// All matches of one group, kind, type and size.
struct CollectiveLine {
  std::size_t example = 0;
  std::int64_t count = 0, calls = 0, complete = 0;
  std::int64_t shared = 0, shared_calls = 0;  // matches of at least two ranks, and their calls
  std::int64_t duration_ns = 0, shortest_ns = 0, transfer_ns = 0, wait_ns = 0;
  std::int64_t complete_transfer_ns = 0, complete_bytes = 0, bytes = 0;
  bool bytes_known = true;
  MatchedBy by = MatchedBy::alone;
};

std::vector<CollectiveLine> lines_of(const Run& run) {
  using Key = std::tuple<std::uint32_t, CollectiveKind, std::string_view, std::int64_t, std::string_view>;
  std::map<Key, CollectiveLine> lines;
  for (std::size_t i = 0; i < run.matches.size(); i++) {
    const Match& match = run.matches.rows[i];
    const auto members = run.matches.of(i);
    const bool known = members.front().collective != MatchMember::kNone;
    const std::int64_t size = match.kind == CollectiveKind::all_to_all ? 0 : match.elements;  // differs by call
    CollectiveLine& line = lines[{match.lane, match.kind, dtype_of(run, members.front()), size,
                                  known ? std::string_view() : call_name(run, members.front())}];
    if (line.count++ == 0) line.example = i;
    const MatchTime time = match_time(run, i);
    line.calls += static_cast<std::int64_t>(members.size());
    for (const MatchMember& member : members) line.duration_ns += member.end_ns - member.start_ns;
    line.shortest_ns += time.transfer_ns;
    if (members.size() > 1) {
      if (line.shared++ == 0) line.by = match.by;
      line.shared_calls += static_cast<std::int64_t>(members.size());
      line.transfer_ns += time.transfer_ns;
      line.wait_ns += time.wait_ns;
    }
    if (match.bytes == Match::kUnknownBytes) {
      line.bytes_known = false;
      continue;
    }
    line.bytes += match.bytes;
    if (!is_complete(run, i)) continue;
    line.complete++;
    line.complete_transfer_ns += time.transfer_ns;
    line.complete_bytes += match.bytes;
  }
  std::vector<CollectiveLine> out;
  for (const auto& [key, line] : lines) out.push_back(line);
  std::stable_sort(out.begin(), out.end(),
                   [](const CollectiveLine& a, const CollectiveLine& b) { return a.duration_ns > b.duration_ns; });
  return out;
}

std::string kind_text(const Run& run, const CollectiveLine& line) {
  const Match& match = run.matches.rows[line.example];
  if (match.kind != CollectiveKind::other) return std::string(to_string(match.kind));
  const std::string_view name = call_name(run, run.matches.of(line.example).front());
  return std::string(name.substr(0, name.find_first_of("(<")));
}

std::vector<Value> row_of(const Run& run, const CollectiveLine& line) {
  const Match& match = run.matches.rows[line.example];
  const CommLane& lane = run.matches.lanes[match.lane];
  const bool whole = line.complete > 0;
  Value algorithm, bus;
  if (line.bytes_known) {
    algorithm = whole ? share(line.complete_bytes, line.complete_transfer_ns) : share(line.bytes, line.shortest_ns);
  }
  const std::int64_t ranks = match.kind == CollectiveKind::send ? 2 : lane.size;
  if (const double* speed = std::get_if<double>(&algorithm)) {
    if (const auto factor = bus_factor(match.kind, ranks)) bus = *speed * *factor;
  }
  return {kind_text(run, line),
          text(lane.name),
          lane.size > 0 ? Value(lane.size) : Value(),
          text(dtype_of(run, run.matches.of(line.example).front())),
          line.count,
          line.shared,
          line.complete,
          line.bytes_known ? Value(line.bytes / line.count) : Value(),
          line.duration_ns / line.calls,
          line.shared > 0 ? Value(line.transfer_ns / line.shared) : Value(),
          line.shared > 0 ? Value(line.wait_ns / line.shared_calls) : Value(),
          algorithm,
          bus,
          std::holds_alternative<std::monostate>(algorithm) ? Value()
                                                            : Value(std::string(whole ? "transfer" : "lower bound")),
          std::string(to_string(line.by))};
}

Table collectives_table(const Run& run, const std::vector<CollectiveLine>& lines) {
  Table table{
      .name = "collectives",
      .columns = {
          {"kind", ValueType::text, Unit::none, "Collective; its name where it is none of the known"},
          {"group", ValueType::text, Unit::none, "Process group, or what its calls share"},
          {"group_size", ValueType::integer, Unit::count, "Ranks in the group; unknown: not recorded"},
          {"dtype", ValueType::text, Unit::none, "Element type; unknown: not recorded"},
          {"count", ValueType::integer, Unit::count, "Collectives"},
          {"matched", ValueType::integer, Unit::count, "Of these, found on at least two ranks"},
          {"complete", ValueType::integer, Unit::count, "Of these, seen on all ranks of the group"},
          {"bytes", ValueType::integer, Unit::bytes,
           "Full buffer of one, by the convention of NCCL's tests; unknown: not recorded"},
          {"duration_ns", ValueType::integer, Unit::ns, "Mean duration on a rank"},
          {"transfer_ns", ValueType::integer, Unit::ns,
           "Mean time from the last arrival to the end, of the matched ones"},
          {"wait_ns", ValueType::integer, Unit::ns,
           "Mean time that a rank waited for the last one, in the matched ones"},
          {"algorithm_gb_per_s", ValueType::real, Unit::gb_per_s, "Bytes over the transfer, 1 GB = 10⁹"},
          {"bus_gb_per_s", ValueType::real, Unit::gb_per_s, "Algorithm bandwidth × the collective's bus factor"},
          {"bandwidth_is", ValueType::text, Unit::none,
           "transfer: of collectives seen on all ranks; lower bound: some waiting is in the time"},
          {"matched_by", ValueType::text, Unit::none, "How its calls on the ranks were found"}}};
  for (const CollectiveLine& line : lines) table.rows.push_back(row_of(run, line));
  return table;
}

std::string listed(const std::vector<std::int64_t>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) end++;
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (end - i > 1) out += "–" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return out;
}

struct Group {
  std::string description, backend;
  std::int64_t size = 0, opened = 0, collectives = 0;
};

// Every group that some rank names, used or not, with what the calls say where the list is missing.
Table groups_table(const Run& run) {
  std::map<std::pair<std::string, std::string>, Group> groups;  // name, ranks
  for (const Trace& trace : run.traces) {
    for (const ProcessGroup& recorded : trace.groups) {
      Group& group = groups[{recorded.name, listed(recorded.ranks)}];
      group.description = recorded.description;
      group.backend = recorded.backend;
      group.size = recorded.size;
      group.opened++;
    }
  }
  std::vector<std::int64_t> collectives(run.matches.lanes.size());
  for (std::size_t i = 0; i < run.matches.size(); i++) collectives[run.matches.rows[i].lane]++;
  for (std::size_t i = 0; i < collectives.size(); i++) {
    const CommLane& lane = run.matches.lanes[i];
    if (!lane.recorded) continue;
    std::vector<std::int64_t> ranks;
    for (std::size_t at = 0; at < lane.ranks_text.size();) {
      const std::size_t first = lane.ranks_text.find_first_of("0123456789", at);
      if (first == std::string::npos) break;
      const std::size_t end = std::min(lane.ranks_text.find_first_not_of("0123456789", first), lane.ranks_text.size());
      if (end - first < 18) ranks.push_back(std::stoll(lane.ranks_text.substr(first, end - first)));
      at = end;
    }
    Group& group = groups[{lane.name, listed(ranks)}];
    if (group.size == 0) group.size = lane.size;
    group.collectives += collectives[i];
  }
  Table table{.name = "groups",
              .columns = {{"group", ValueType::text, Unit::none, "Process group"},
                          {"description", ValueType::text, Unit::none, "What it is for, as recorded"},
                          {"backend", ValueType::text, Unit::none, "Backend; unknown: not recorded"},
                          {"group_size", ValueType::integer, Unit::count, "Ranks in it; unknown: not recorded"},
                          {"ranks", ValueType::text, Unit::none, "Its ranks, as far as recorded"},
                          {"collectives", ValueType::integer, Unit::count, "Collectives seen in it"}}};
  for (const auto& [key, group] : groups) {
    table.rows.push_back({text(key.first), text(group.description), text(group.backend),
                          group.size > 0 ? Value(group.size) : Value(), text(key.second), group.collectives});
  }
  return table;
}

struct RankSum {
  std::int64_t calls = 0, duration_ns = 0, wait_ns = 0, last = 0, shared = 0;
};

Table ranks_table(const Run& run) {
  std::vector<RankSum> sums(run.traces.size());
  for (std::size_t i = 0; i < run.matches.size(); i++) {
    const auto members = run.matches.of(i);
    const MatchTime time = match_time(run, i);
    for (const MatchMember& member : members) {
      RankSum& sum = sums[member.trace];
      sum.calls++;
      sum.duration_ns += member.end_ns - member.start_ns;
      if (members.size() < 2) continue;
      sum.shared++;
      const std::int64_t waited = member.end_ns - member.start_ns - time.transfer_ns;
      sum.wait_ns += std::max<std::int64_t>(waited, 0);
      if (waited <= 0) sum.last++;
    }
  }
  Table table{.name = "ranks",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"calls", ValueType::integer, Unit::count, "Its communication calls"},
                          {"shared", ValueType::integer, Unit::count, "Of these, matched with another rank's"},
                          {"duration_ns", ValueType::integer, Unit::ns, "Sum of their durations"},
                          {"wait_ns", ValueType::integer, Unit::ns,
                           "Of this, waiting for the last rank; unknown without another rank"},
                          {"came_last", ValueType::integer, Unit::count, "Collectives in which no rank came later"}}};
  for (std::size_t i = 0; i < sums.size(); i++) {
    if (sums[i].calls == 0) continue;
    const bool shared = sums[i].shared > 0;
    table.rows.push_back({run.traces[i].rank.rank, sums[i].calls, sums[i].shared, sums[i].duration_ns,
                          shared ? Value(sums[i].wait_ns) : Value(), shared ? Value(sums[i].last) : Value()});
  }
  return table;
}

// What each rank sends in all-to-alls: uneven sizes make the slowest pair the speed of all.
Table uneven_table(const Run& run) {
  struct Sizes {
    std::int64_t count = 0, least = INT64_MAX, most = 0, sum = 0, worst = 0;
    double skew = 0;
  };
  std::map<std::uint32_t, Sizes> lanes;
  for (std::size_t i = 0; i < run.matches.size(); i++) {
    const Match& match = run.matches.rows[i];
    if (match.kind != CollectiveKind::all_to_all || match.bytes == Match::kUnknownBytes) continue;
    std::int64_t sum = 0, most = 0, members = 0;
    Sizes& sizes = lanes[match.lane];
    for (const MatchMember& member : run.matches.of(i)) {
      if (member.collective == MatchMember::kNone) continue;
      const auto bytes = collective_bytes(run.traces[member.trace], member.collective);
      if (!bytes) continue;
      members++;
      sum += *bytes;
      most = std::max(most, *bytes);
      sizes.least = std::min(sizes.least, *bytes);
    }
    if (members == 0) continue;
    sizes.count += members;
    sizes.sum += sum;
    sizes.most = std::max(sizes.most, most);
    if (sum > 0) sizes.skew = std::max(sizes.skew, static_cast<double>(most * members) / static_cast<double>(sum));
  }
  Table table{.name = "all_to_all",
              .columns = {{"group", ValueType::text, Unit::none, "Process group"},
                          {"calls", ValueType::integer, Unit::count, "Calls with recorded sizes, of all ranks"},
                          {"min_bytes", ValueType::integer, Unit::bytes, "Least that a rank sent in one"},
                          {"mean_bytes", ValueType::integer, Unit::bytes, "Mean that a rank sent in one"},
                          {"max_bytes", ValueType::integer, Unit::bytes, "Most that a rank sent in one"},
                          {"skew", ValueType::real, Unit::none,
                           "Most uneven collective: what its busiest rank sent over the mean of its ranks"}}};
  for (const auto& [lane, sizes] : lanes) {
    if (sizes.count == 0) continue;
    table.rows.push_back({text(run.matches.lanes[lane].name), sizes.count, sizes.least, sizes.sum / sizes.count,
                          sizes.most, sizes.skew});
  }
  return table;
}

void add_scalars(Answer& answer, const Run& run) {
  std::int64_t matched = 0, complete = 0, alone = 0, transfer = 0, wait = 0;
  for (std::size_t i = 0; i < run.matches.size(); i++) {
    const bool shared = run.matches.of(i).size() > 1;
    matched += shared ? 1 : 0;
    alone += shared ? 0 : 1;
    complete += is_complete(run, i) ? 1 : 0;
    if (!shared) continue;
    const MatchTime time = match_time(run, i);
    transfer += time.transfer_ns * static_cast<std::int64_t>(run.matches.of(i).size());
    wait += time.wait_ns;
  }
  const auto bound = clock_bound_ns(run);
  add_scalar(answer, "collective_count", static_cast<std::int64_t>(run.matches.size()), Unit::count,
             "Collectives; one that several ranks recorded counts once");
  add_scalar(answer, "matched_count", matched, Unit::count, "Of these, found on at least two ranks");
  add_scalar(answer, "complete_count", complete, Unit::count, "Of these, found on every rank of their group");
  add_scalar(answer, "alone_count", alone, Unit::count, "Calls without a partner in what was opened");
  add_scalar(answer, "wait_share", share(wait, wait + transfer), Unit::ratio,
             matched > 0 ? "Share of the time in matched collectives that is waiting for the last rank"
                         : "Needs the traces of two ranks that communicate");
  add_scalar(answer, "clock_bound_ns", run.traces.size() > 1 ? to_value(bound) : Value(), Unit::ns,
             run.traces.size() < 2 ? "Needs two ranks"
             : bound               ? "Nine in ten ends of shared collectives agree as closely on the run's clock"
                                   : "Not all clocks could be fitted: some ranks share no collectives with the others");
}

Result<Answer> run_collectives(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  add_scalars(answer, run);
  const auto lines = lines_of(run);
  answer.tables = {collectives_table(run, lines), groups_table(run), ranks_table(run), uneven_table(run)};
  limit_rows(answer, answer.tables[0], options.max_rows, "those with less time");
  const bool lower =
      std::any_of(lines.begin(), lines.end(), [](const CollectiveLine& l) { return l.complete < l.count; });
  if (run.matches.size() == 0) {
    answer.notes.push_back("No communication was recorded.");
  } else if (lower) {
    answer.notes.push_back(
        "Where not all ranks of a group were opened, or its size is not recorded, the shortest duration at hand may "
        "still hold waiting: bandwidth is a lower bound. Open the traces of all ranks together.");
  }
  std::erase_if(answer.tables, [](const Table& table) { return table.rows.empty(); });
  return answer;
}

}  // namespace

Analysis collectives_analysis() {
  return {"collectives",
          "How much of each collective is transfer, how much is waiting for the last rank, and how fast is it?",
          run_collectives};
}

}  // namespace stepscope::analyze
