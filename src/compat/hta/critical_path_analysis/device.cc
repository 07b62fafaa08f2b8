#include <algorithm>

#include "compat/hta/counters.h"
#include "compat/hta/critical_path_analysis/builder.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

constexpr double kLongestKernelDelay = 1500;  // us; what is longer waited for something that HTA does not know

// Walks device rows by start (waits by end) and links each with what it waited for.
class DeviceLinks {
 public:
  explicit DeviceLinks(PathBuilder& builder) : builder_(builder), waits_(find_event_waits(builder.table())) {
    for (const QueueLine& line : queue_lengths(builder.table())) {
      for (const Point& point : line.points) queue_.emplace(point.index, point.value);
    }
  }

  void add(const Row& row) {
    const std::string_view name = builder_.table().name(row);
    if (builder_.table().category(row) != "cuda_sync") return add_work(row);
    if (name == "Stream Wait Event" || name == "Event Sync") return add_event_wait(row, name == "Event Sync");
    if (name == "Context Sync") {
      for (const auto& [stream, node] : last_) link_host(node, row);
    } else if (const auto last = find_last(row.stream)) {
      link_host(*last, row);
    }
  }

 private:
  std::optional<std::uint32_t> find_last(std::int64_t stream) const {
    const auto found =
        std::find_if(last_.begin(), last_.end(), [&](const auto& entry) { return entry.first == stream; });
    return found == last_.end() ? std::nullopt : std::optional(found->second);
  }

  bool queue_is(std::int64_t index, double length) const {
    const auto found = index < 0 ? queue_.end() : queue_.find(static_cast<std::uint32_t>(index));
    return found != queue_.end() && found->second == length;
  }

  // The host call that waited ends when the device's work does.
  void link_host(std::uint32_t work_end, const Row& wait) {
    if (const auto call = builder_.nodes_of(wait.index_correlation))
      builder_.graph.connect(work_end, call->end, EdgeType::sync);
  }

  std::int64_t partner(std::int64_t index) const {
    const Row* const row = builder_.table().at(index);
    return row == nullptr ? kNone : row->index_correlation;
  }

  void add_event_wait(const Row& wait, bool by_host) {
    const DeviceRows& device = builder_.table().trace().device;
    const auto* const found =
        std::lower_bound(device.slice.begin(), device.slice.end(), static_cast<SliceId>(wait.index));
    const auto at = static_cast<std::size_t>(found - device.slice.begin());
    const auto record = waits_.launch_before_record.find(device.wait_correlation[at]);
    if (record == waits_.launch_before_record.end()) return;
    const std::int64_t source = partner(record->second);
    if (by_host) {
      if (const auto work = builder_.nodes_of(source)) link_host(work->end, wait);
      return;
    }
    const auto next = waits_.launch_after_wait.find(wait.index_correlation);
    if (next != waits_.launch_after_wait.end() && next->second >= 0) waited_for_[partner(next->second)] = source;
  }

  void add_work(const Row& row) {
    const auto nodes = builder_.nodes_of(row.index);
    if (!nodes) return;
    PathGraph& graph = builder_.graph;
    graph.connect(nodes->start, nodes->end, EdgeType::operation).event = row.index;
    std::optional<std::uint32_t> synced;
    if (const auto wait = waited_for_.find(row.index); wait != waited_for_.end()) {
      if (const auto source = builder_.nodes_of(wait->second)) {
        synced = source->end;
        graph.connect(*synced, nodes->start, EdgeType::sync);
      }
      waited_for_.erase(wait);
    }
    link_to_queue(row, nodes->start, synced);
    set_last(row.stream, nodes->end);
  }

  // It started late because it was launched late, or because the stream was still busy.
  void link_to_queue(const Row& row, std::uint32_t start, std::optional<std::uint32_t> synced) {
    PathGraph& graph = builder_.graph;
    const auto last = find_last(row.stream);
    const auto ts = [&](std::uint32_t node) { return graph.nodes[node].ts; };
    const Row* const launch = builder_.table().at(row.index_correlation);
    if (launch != nullptr && queue_is(row.index_correlation, 1) && queue_is(row.index, 0) &&
        (!last || ts(*last) < launch->ts) && (!synced || ts(*synced) < launch->ts)) {
      if (const auto call = builder_.nodes_of(row.index_correlation))
        graph.connect(call->start, start, EdgeType::launch_delay);
    } else if (last && ts(start) - ts(*last) < kLongestKernelDelay && (!synced || ts(*synced) < ts(*last))) {
      graph.connect(*last, start, EdgeType::kernel_delay).event = graph.nodes[*last].index;
    }
  }

  void set_last(std::int64_t stream, std::uint32_t node) {
    const auto found =
        std::find_if(last_.begin(), last_.end(), [&](const auto& entry) { return entry.first == stream; });
    if (found == last_.end()) {
      last_.emplace_back(stream, node);
    } else {
      found->second = node;
    }
  }

  PathBuilder& builder_;
  EventWaits waits_;
  std::unordered_map<std::uint32_t, double> queue_;            // length after this event, by index
  std::vector<std::pair<std::int64_t, std::uint32_t>> last_;   // node, by stream in order of first use
  std::unordered_map<std::int64_t, std::int64_t> waited_for_;  // work → work that it waits for
};

}  // namespace

void PathBuilder::connect_device() {
  std::vector<Row> rows;
  std::vector<double> times;
  for (const Row& row : window_) {
    const std::string_view name = table_.name(row);
    const bool on_device = row.stream != kNone || name == "Event Sync" || name == "Context Sync";
    if (!on_device || row.index_correlation < 0) continue;
    rows.push_back(row);
    times.push_back(table_.category(row) == "cuda_sync" ? row.end() : row.ts);
  }
  DeviceLinks links(*this);
  for (const std::uint32_t at : sort_order(times)) links.add(rows[at]);
}

}  // namespace stepscope::compat::hta
