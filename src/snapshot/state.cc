#include "snapshot/state.h"

#include <algorithm>

#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

// What events say of a stretch that was unmapped since is not all that the segments at the end say.
bool may_be_same(std::uint32_t a, std::uint32_t b) { return a == kNoEntry || b == kNoEntry || a == b; }

bool is_one_piece(const Segment& a, const Segment& b) {
  return a.expandable == 1 && b.expandable == 1 && may_be_same(a.stream, b.stream) && may_be_same(a.pool, b.pool) &&
         behind(a.address, a.bytes) == b.address;
}

std::vector<Segment> segments_at(const HeldRanges& ranges, SnapshotRows rows, std::uint32_t moment) {
  std::vector<Segment> pieces, joined;
  for (std::uint32_t i = rows.first; i < rows.first + rows.count; i++) {
    if (!ranges.held(i, moment)) continue;
    pieces.push_back(
        {ranges.address[i], ranges.bytes[i], ranges.stream[i], ranges.pool[i], ranges.expandable[i], ranges.small[i]});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
  for (const Segment& piece : pieces) {
    if (joined.empty() || !is_one_piece(joined.back(), piece)) {
      joined.push_back(piece);
      continue;
    }
    joined.back().bytes = plus(joined.back().bytes, piece.bytes);
    joined.back().small = std::max(joined.back().small, piece.small);
    joined.back().stream = std::min(joined.back().stream, piece.stream);  // kNoEntry is the largest
    joined.back().pool = std::min(joined.back().pool, piece.pool);
  }
  return joined;
}

}  // namespace

State state_at(const AllocatorHistory& history, const SnapshotDevice& device, std::uint32_t moment) {
  State state{.moment = moment};
  const Allocations& all = history.allocations;
  const auto begin = all.begin.span(), end = all.end.span();
  for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
    if (begin[i] <= moment && moment < end[i]) state.rows.push_back(i);
  }
  std::sort(state.rows.begin(), state.rows.end(),
            [&](std::uint32_t a, std::uint32_t b) { return all.address[a] < all.address[b]; });
  state.segments = segments_at(history.ranges, device.ranges, moment);
  return state;
}

LiveBytes live_bytes(const AllocatorHistory& history, const State& state) {
  LiveBytes sum;
  for (const std::uint32_t row : state.rows) {
    const std::int64_t block = history.allocations.block_bytes[row];
    sum.asked = plus(sum.asked, history.allocations.bytes[row]);
    sum.blocks = plus(sum.blocks, block);
    if (history.allocations.freed[row] <= state.moment) sum.pending = plus(sum.pending, block);
  }
  return sum;
}

}  // namespace stepscope::snapshot
