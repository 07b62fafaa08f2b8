// Links: which call launched each piece of device work, and which op that call belongs to.
//
// First by correlation id (CUDA runtime and driver, HIP, MTIA: one id for the call and all that it started, so a graph
// launch has many kernels). Ids may repeat in merged files: then the call that launches work and started last before
// the work wins. What is left is linked by arrows (flows) of any category from a host call to device work.
#include "derive/flow_links.h"
#include "derive/passes.h"
#include "derive/sort_runs.h"
#include "model/host_names.h"
#include "model/lookup.h"

namespace stepscope::derive {
namespace {

// A verdict on names, asked once per distinct name.
class LaunchNames {
 public:
  explicit LaunchNames(const Trace& trace) : trace_(trace), verdict_(trace.strings.size(), 0) {}
  bool operator()(SliceId id) {
    const StringId name = trace_.slices.name[id];
    if (name == StringId::none) return false;
    char& verdict = verdict_[static_cast<std::size_t>(name)];
    if (verdict == 0) verdict = launches_work(trace_.strings[name]) ? 'y' : 'n';
    return verdict == 'y';
  }

 private:
  const Trace& trace_;
  std::vector<char> verdict_;
};

struct Call {
  std::int64_t correlation;
  std::int64_t start_ns;
  SliceId id;
  bool launches;
};

bool before(const Call& a, const Call& b) {
  if (a.correlation != b.correlation) return a.correlation < b.correlation;
  if (a.launches != b.launches) return a.launches;
  return a.start_ns < b.start_ns;
}

// 0 and negative ids stand for "none" in every writer seen.
bool is_correlation(std::int64_t id) { return id > 0; }

std::vector<Call> calls_by_correlation(const Trace& trace, LaunchNames& launches) {
  std::vector<Call> calls;
  calls.reserve(trace.launches.size());
  for (std::size_t row = 0; row < trace.launches.size(); row++) {
    const SliceId id = trace.launches.slice[row];
    if (is_correlation(trace.launches.correlation[row]))
      calls.push_back({trace.launches.correlation[row], trace.slices.start_ns[id], id, launches(id)});
  }
  sort_runs(calls, before);
  return calls;
}

// The call in [first, last) that began last before `start_ns`, else the first one.
SliceId best_call(const Call* first, const Call* last, std::int64_t start_ns) {
  const Call* after = std::upper_bound(first, last, start_ns,
                                       [](std::int64_t start, const Call& call) { return start < call.start_ns; });
  return (after == first ? first : after - 1)->id;
}

// The calls with one correlation id that come into question: those that launch work, the others only without any.
struct Group {
  const Call* first;
  const Call* last;
};

Group group_of(std::int64_t correlation, const Call* from, const Call* end) {
  while (from != end && from->correlation < correlation) from++;
  const Call* last = from;
  while (last != end && last->correlation == correlation && last->launches == from->launches) last++;
  return {from, last};
}

struct Work {
  std::int64_t correlation;
  std::uint32_t row;
};

void link_by_correlation(Trace& trace, LaunchNames& launches) {
  const std::vector<Call> calls = calls_by_correlation(trace, launches);
  std::vector<Work> works;
  works.reserve(trace.device.size());
  for (std::size_t row = 0; row < trace.device.size(); row++)
    if (is_correlation(trace.device.correlation[row]))
      works.push_back({trace.device.correlation[row], static_cast<std::uint32_t>(row)});
  sort_runs(works, [](const Work& a, const Work& b) { return a.correlation < b.correlation; });
  const Call* end = calls.data() + calls.size();
  Group group{calls.data(), calls.data()};
  std::int64_t correlation = 0;
  for (const Work& work : works) {
    if (work.correlation != correlation) group = group_of(work.correlation, group.last, end);
    correlation = work.correlation;
    if (group.first == group.last) continue;
    const std::int64_t start = trace.slices.start_ns[trace.device.slice[work.row]];
    trace.device.launch[work.row] = best_call(group.first, group.last, start);
  }
}

// Every call that launches work by its name, or to which work was linked, is counted once.
void count_links(Trace& trace, LaunchNames& launches) {
  std::vector<char> has_work(trace.slices.size(), 0);
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    if (!is_device_work(trace.kind(trace.device.slice[row]))) continue;
    const SliceId launch = trace.device.launch[row];
    launch == SliceId::none ? trace.links.device_unlinked++ : trace.links.device_linked++;
    if (launch == SliceId::none || has_work[static_cast<std::size_t>(launch)] != 0) continue;
    has_work[static_cast<std::size_t>(launch)] = 1;
    trace.links.launches_with_work++;
  }
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    if (trace.kind(id) == SliceKind::runtime && has_work[row] == 0 && launches(id)) trace.links.launches_dropped++;
  }
}

struct ExternalOp {
  std::int64_t external_id;
  SliceId id;
};

bool by_external_id(const ExternalOp& a, const ExternalOp& b) { return a.external_id < b.external_id; }

std::vector<ExternalOp> ops_by_external_id(const Trace& trace) {
  std::vector<ExternalOp> ops;
  for (std::size_t row = 0; row < trace.ops.size(); row++)
    if (trace.ops.external_id[row] > 0) ops.push_back({trace.ops.external_id[row], trace.ops.slice[row]});
  sort_runs(ops, by_external_id);
  return ops;
}

// External id of a device row, else that of its launch; kAbsent: neither has one.
std::int64_t external_id(const Trace& trace, std::size_t row) {
  if (trace.device.external_id[row] > 0) return trace.device.external_id[row];
  const SliceId launch = trace.device.launch[row];
  const std::size_t call = launch == SliceId::none ? trace.launches.size() : row_of(trace.launches.slice, launch);
  return call < trace.launches.size() ? trace.launches.external_id[call] : kAbsent;
}

void link_ops(Trace& trace) {
  std::vector<std::uint32_t> left;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId launch = trace.device.launch[row];
    if (launch != SliceId::none) trace.device.op[row] = op_around(trace, launch);
    if (trace.device.op[row] == SliceId::none) left.push_back(static_cast<std::uint32_t>(row));
  }
  if (left.empty() || trace.ops.size() == 0) return;
  const std::vector<ExternalOp> ops = ops_by_external_id(trace);
  for (const std::uint32_t row : left) {
    const std::int64_t id = external_id(trace, row);
    if (id <= 0) continue;
    const auto found = std::lower_bound(ops.begin(), ops.end(), ExternalOp{id, SliceId::none}, by_external_id);
    if (found != ops.end() && found->external_id == id) trace.device.op[row] = found->id;
  }
}

}  // namespace

Result<void> links(Trace& trace, const DeriveOptions&) {
  trace.device.launch.resize(trace.device.size(), SliceId::none);
  trace.device.op.resize(trace.device.size(), SliceId::none);
  LaunchNames launches(trace);
  link_by_correlation(trace, launches);
  trace.links.device_linked_by_flow = link_by_flows(trace);
  count_links(trace, launches);
  link_ops(trace);
  return {};
}

}  // namespace stepscope::derive
