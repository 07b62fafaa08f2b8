// modules: how much time each nn.Module takes, forward and backward, on the host and on the device, by itself and with
// the modules below it.
//
// Device work belongs to the module around its launch. On the host a module has the time of its threads that no range
// or operator inside spends for another one: self time. What runs in a backward pass belongs to the module of the
// forward operator whose gradient it is.
#include <algorithm>
#include <array>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/module_paths.h"

namespace stepscope::analyze {
namespace {

enum Pass : std::uint8_t { forward, backward, kPasses };

struct PassTimes {
  std::array<std::int64_t, kPasses> host_ns{}, device_ns{};

  void add(const PassTimes& other) {
    for (std::size_t i = 0; i < kPasses; i++) host_ns[i] += other.host_ns[i], device_ns[i] += other.device_ns[i];
  }
};

struct ModuleTimes {
  std::uint64_t calls = 0;
  PassTimes own, total;  // total: with the modules below it
};

struct RankModules {
  const Trace* trace;
  ModulePaths paths;
  std::vector<ModuleTimes> nodes;  // as paths.nodes()
  PassTimes outside;               // in no module
  bool device = false;             // the rank has device work: its time is what the module's is

  std::int64_t time_ns(const PassTimes& times, Pass pass) const {
    return device ? times.device_ns[pass] : times.host_ns[pass];
  }
  std::int64_t time_ns(const PassTimes& times) const { return time_ns(times, forward) + time_ns(times, backward); }
};

// Did a thread of the program do it? The recording's own span, say, lies beside the threads and is nobody's time.
bool is_host_work(SliceKind kind) {
  return kind == SliceKind::cpu_op || kind == SliceKind::user_annotation || kind == SliceKind::python_function ||
         kind == SliceKind::runtime;
}

// Per slice, its time without that of the slices directly within it; 0 for what is no work of a host thread.
std::vector<std::int64_t> self_times(const Trace& trace) {
  std::vector<std::int64_t> self(trace.slices.size());
  for (std::size_t i = 0; i < self.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    if (!is_host_work(trace.kind(slice))) continue;
    self[i] += trace.slices.dur_ns[i];
    if (const SliceId above = trace.slices.parent[slice]; above != SliceId::none) {
      self[static_cast<std::size_t>(above)] -= trace.slices.dur_ns[i];
    }
  }
  return self;
}

RankModules modules_of(const Trace& trace) {
  RankModules rank{.trace = &trace, .paths = ModulePaths(trace)};
  rank.nodes.resize(rank.paths.nodes().size());
  if (rank.nodes.empty()) return rank;
  const auto own = [&](std::uint32_t node) -> PassTimes& {
    return node == ModulePaths::none ? rank.outside : rank.nodes[node].own;
  };
  const auto pass_of = [](std::uint8_t phase) {
    return static_cast<Phase>(phase) == Phase::backward ? backward : forward;
  };
  const std::vector<std::int64_t> self = self_times(trace);
  for (std::size_t i = 0; i < self.size(); i++) {
    if (self[i] <= 0) continue;  // below 0: what is inside overlaps its neighbor
    own(rank.paths.node_of(static_cast<SliceId>(i))).host_ns[pass_of(trace.slices.phase[i])] += self[i];
  }
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId work = trace.device.slice[row];
    if (!is_device_work(trace.kind(work))) continue;
    rank.device = true;
    const SliceId by = trace.device.launch[row] != SliceId::none ? trace.device.launch[row] : trace.device.op[row];
    own(rank.paths.node_of(by)).device_ns[pass_of(trace.device.phase[row])] += trace.slices.dur_ns[work];
  }
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) rank.nodes[rank.paths.node_of_call(row)].calls++;
  for (std::size_t i = rank.nodes.size(); i-- > 0;) {  // parents stand before what is in them
    rank.nodes[i].total.add(rank.nodes[i].own);
    const std::uint32_t above = rank.paths.nodes()[i].parent;
    if (above != ModulePaths::none) rank.nodes[above].total.add(rank.nodes[i].total);
  }
  return rank;
}

std::int64_t all_time(const RankModules& rank) {
  std::int64_t sum = rank.time_ns(rank.outside);
  for (const ModuleTimes& node : rank.nodes) sum += rank.time_ns(node.own);
  return sum;
}

std::int64_t both(const std::array<std::int64_t, kPasses>& times) { return times[forward] + times[backward]; }

Table tree_table(const std::vector<RankModules>& ranks) {
  Table table{
      .name = "tree",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"module", ValueType::text, Unit::none, "Its path; unknown: what runs in no module"},
          {"class", ValueType::text, Unit::none, "Its class; unknown: not recorded, or nobody calls it"},
          {"calls", ValueType::integer, Unit::count, "How often it was called"},
          {"time_ns", ValueType::integer, Unit::ns,
           "Summed time of the device work launched in it and in the modules below it, with that of its gradients; of "
           "a rank that used no device, time on the host"},
          {"share", ValueType::real, Unit::ratio, "Share of the time of the rank, in modules or not"},
          {"forward_ns", ValueType::integer, Unit::ns, "Of the time: not in a backward pass"},
          {"backward_ns", ValueType::integer, Unit::ns, "Of the time: in a backward pass, what runs again for it too"},
          {"own_ns", ValueType::integer, Unit::ns, "Of the time: in none of the modules below it"},
          {"host_ns", ValueType::integer, Unit::ns,
           "Time of threads in it and in the modules below it, waits included"},
          {"depth", ValueType::integer, Unit::none, "Modules around it"},
          {"parent", ValueType::text, Unit::none, "Path of the innermost of them"}}};
  for (const RankModules& rank : ranks) {
    if (rank.nodes.empty()) continue;
    const std::int64_t all = all_time(rank);
    const auto add = [&](Value path, Value type, Value calls, const PassTimes& own, const PassTimes& total, Value depth,
                         Value parent) {
      table.rows.push_back({rank.trace->rank.rank, std::move(path), std::move(type), std::move(calls),
                            rank.time_ns(total), share(rank.time_ns(total), all), rank.time_ns(total, forward),
                            rank.time_ns(total, backward), rank.time_ns(own), both(total.host_ns), std::move(depth),
                            std::move(parent)});
    };
    std::vector<std::uint32_t> order(rank.nodes.size());
    for (std::uint32_t i = 0; i < order.size(); i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rank.time_ns(rank.nodes[a].total) > rank.time_ns(rank.nodes[b].total);
    });
    for (const std::uint32_t at : order) {
      const ModulePaths::Node& place = rank.paths.nodes()[at];
      const ModuleTimes& node = rank.nodes[at];
      add(text(place.path), text(rank.trace->strings[place.type]), count(node.calls), node.own, node.total,
          std::int64_t{place.depth},
          place.parent == ModulePaths::none ? Value() : text(rank.paths.nodes()[place.parent].path));
    }
    add({}, {}, {}, rank.outside, rank.outside, {}, {});
  }
  return table;
}

constexpr std::string_view kNoModules =
    "No modules were recorded. stepscope run records them; with torch.profiler by itself, with_modules=True, or "
    "with_stack=True.";

Result<Answer> run_modules(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  std::vector<RankModules> ranks;
  std::int64_t modules = 0, outside = 0, all = 0;
  for (const Trace& trace : run.traces) {
    const RankModules& rank = ranks.emplace_back(modules_of(trace));
    modules += static_cast<std::int64_t>(rank.nodes.size());
    if (rank.nodes.empty()) continue;
    outside += rank.time_ns(rank.outside);
    all += all_time(rank);
  }
  Answer answer;
  add_scalar(answer, "module_count", value_if(modules > 0, modules), Unit::count,
             modules > 0 ? "Modules of all ranks" : kNoModules);
  add_scalar(answer, "outside_share", share(outside, all), Unit::ratio,
             modules > 0 ? "Share of the time of these ranks, each in what its modules are measured by, in no module"
                         : kNoModules);
  answer.tables.push_back(tree_table(ranks));
  limit_rows(answer, answer.tables.back(), options.max_rows, "later ranks, or less time");
  return answer;
}

}  // namespace

Analysis modules_analysis() { return {"modules", "How long does each module take?", run_modules}; }

}  // namespace stepscope::analyze
