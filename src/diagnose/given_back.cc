#include "diagnose/given_back.h"

#include <algorithm>
#include <map>
#include <utility>

#include "diagnose/gathered.h"

namespace stepscope::diagnose {
namespace {

constexpr std::uint32_t kNoNode = simulate::kNone;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 42;

// The work of a thread, by time.
class Threads {
 public:
  explicit Threads(const Case& about) {
    for_each_work(about, [&](std::uint32_t node, const Work& work) {
      if (work.device || work.role != simulate::NodeRole::host) return;
      const simulate::ReplayGraph& graph = about.predictor.graph();
      threads_[{work.trace, work.track}].push_back(
          {work.start_ns, work.start_ns + graph.end_ns(node) - graph.start_ns[node], node});
    });
    for (auto& [thread, pieces] : threads_) std::sort(pieces.begin(), pieces.end());
  }

  std::uint32_t at(const Trace& trace, TrackId track, std::int64_t time_ns) const {
    const auto thread = threads_.find({&trace, track});
    if (thread == threads_.end()) return kNoNode;
    const std::vector<Piece>& pieces = thread->second;
    auto after = std::upper_bound(pieces.begin(), pieces.end(), time_ns,
                                  [](std::int64_t t, const Piece& piece) { return t < piece.start_ns; });
    if (after == pieces.begin()) return kNoNode;
    --after;
    return time_ns < after->end_ns ? after->node : kNoNode;
  }

 private:
  struct Piece {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t node = 0;
    bool operator<(const Piece& other) const { return start_ns < other.start_ns; }
  };
  std::map<std::pair<const Trace*, TrackId>, std::vector<Piece>> threads_;
};

// Rows of the host's large tensors, by time.
std::vector<std::size_t> large_rows(const Trace& trace) {
  const MemoryEvents& memory = trace.memory;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < memory.size(); row++) {
    if (memory.device_type[row] != 0 || !memory.bytes.has(row)) continue;
    const std::int64_t bytes = memory.bytes[row];
    if (std::clamp(bytes, -kMostBytes, kMostBytes) != bytes) continue;  // there is no such memory
    if (bytes >= kLargeBytes || bytes <= -kLargeBytes) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return memory.time_ns[a] < memory.time_ns[b]; });
  return rows;
}

}  // namespace

GivenBack::GivenBack(const Case& about) {
  const Threads threads(about);
  for (const Trace& trace : about.run.traces) {
    const MemoryEvents& memory = trace.memory;
    std::unordered_map<std::int64_t, std::uint32_t> made;  // by address
    for (const std::size_t row : large_rows(trace)) {
      const std::uint32_t node = threads.at(trace, memory.track[row], memory.time_ns[row]);
      const std::int64_t address = memory.address[row];
      if (memory.bytes[row] > 0) {
        if (address != kAbsent) made[address] = node;
        continue;
      }
      const std::int64_t bytes = -memory.bytes[row];
      const auto maker = made.find(address);
      if (node != kNoNode) {
        bytes_[node] += bytes;
        if (maker != made.end() && maker->second != kNoNode) {
          const Work by = about.work(maker->second), there = about.work(node);
          if (there.operation == SliceId::none || there.operation != by.operation)
            outputs_[maker->second].push_back({node, bytes});
        }
      }
      if (maker != made.end()) made.erase(maker);
    }
  }
}

std::int64_t GivenBack::bytes(std::uint32_t node) const {
  const auto found = bytes_.find(node);
  return found == bytes_.end() ? 0 : found->second;
}

const std::vector<GivenBack::Output>& GivenBack::outputs(std::uint32_t node) const {
  static const std::vector<Output> kNone;
  const auto found = outputs_.find(node);
  return found == outputs_.end() ? kNone : found->second;
}

const GivenBack& given_back(const Case& about) {
  return about.shared<GivenBack>([](const Case& of) { return GivenBack(of); });
}

}  // namespace stepscope::diagnose
