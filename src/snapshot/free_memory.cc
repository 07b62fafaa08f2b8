#include "snapshot/free_memory.h"

#include <algorithm>

#include "snapshot/byte_sums.h"
#include "snapshot/rounding.h"

namespace stepscope::snapshot {
namespace {

// A piece of a segment: free, or a block.
struct Piece {
  std::int64_t bytes = 0;
  std::uint32_t row = kNoEntry;  // none: free

  bool is_free() const { return row == kNoEntry; }
};

class Walk {
 public:
  Walk(const AllocatorHistory& history, const State& state, const std::optional<Wanted>& wanted, FreeMemory& out)
      : rows_(history.allocations), state_(state), wanted_(wanted), out_(out) {}

  void run() {
    std::size_t next = 0;
    for (const Segment& segment : state_.segments) {
      const std::uint64_t end = behind(segment.address, segment.bytes);
      while (next < state_.rows.size() && rows_.address[state_.rows[next]] < segment.address) next++;
      cut(segment, end, next);
      sum_up(segment);
    }
    const auto more_free = [](const Between& a, const Between& b) { return a.free_bytes > b.free_bytes; };
    std::stable_sort(out_.blockers.begin(), out_.blockers.end(), more_free);
    if (out_.blockers.size() > kMostBlockers) out_.blockers.resize(kMostBlockers);
  }

 private:
  void cut(const Segment& segment, std::uint64_t end, std::size_t& next) {
    pieces_.clear();
    std::uint64_t at = segment.address;
    for (; next < state_.rows.size() && rows_.address[state_.rows[next]] < end; next++) {
      const std::uint32_t row = state_.rows[next];
      const std::uint64_t start = std::max(at, rows_.address[row]);  // of a file that lets blocks overlap: what is left
      const std::uint64_t stop = std::min(end, behind(rows_.address[row], rows_.block_bytes[row]));
      if (start > at) pieces_.push_back({between(at, start)});
      if (stop > start) pieces_.push_back({between(start, stop), row});
      at = std::max(at, stop);
    }
    if (end > at) pieces_.push_back({between(at, end)});
  }

  bool is_usable(const Segment& segment) const {
    if (!wanted_) return true;
    const bool small = wanted_->bytes <= kMostSmall;
    const auto same = [](std::uint32_t a, std::uint32_t b) { return a == kNoEntry || b == kNoEntry || a == b; };
    return same(segment.stream, wanted_->stream) && same(segment.pool, wanted_->pool) &&
           (segment.small < 0 || (segment.small == 1) == small);
  }

  void sum_up(const Segment& segment) {
    const bool usable = is_usable(segment);
    out_.reserved = plus(out_.reserved, segment.bytes);
    for (const Piece& piece : pieces_) {
      std::int64_t& sum = piece.is_free() ? out_.free : out_.taken;
      sum = plus(sum, piece.bytes);
      if (!piece.is_free()) continue;
      out_.runs++;
      out_.largest_run = std::max(out_.largest_run, piece.bytes);
      if (!usable) continue;
      out_.usable = plus(out_.usable, piece.bytes);
      out_.largest_usable = std::max(out_.largest_usable, piece.bytes);
    }
    if (!usable) return;
    find_blockers();
    if (wanted_) find_cheapest();
  }

  void add_block(Between& to, const Piece& piece) const {
    to.live_bytes = plus(to.live_bytes, piece.bytes);
    to.blocks++;
    if (to.largest == kNoEntry || rows_.block_bytes[piece.row] > rows_.block_bytes[to.largest]) to.largest = piece.row;
  }

  void find_blockers() {
    std::size_t before = pieces_.size();  // the free piece before the blocks at hand
    Between group;
    for (std::size_t i = 0; i < pieces_.size(); i++) {
      if (!pieces_[i].is_free()) {
        add_block(group, pieces_[i]);
        continue;
      }
      if (before < pieces_.size() && group.blocks > 0) {
        group.free_bytes = plus(pieces_[before].bytes, pieces_[i].bytes);
        keep(group);
      }
      before = i;
      group = {};
    }
  }

  // Not all of them: a hundred thousand small ones stand in no table.
  void keep(const Between& group) {
    out_.blockers.push_back(group);
    if (out_.blockers.size() < 64 * kMostBlockers) return;
    std::nth_element(out_.blockers.begin(), out_.blockers.begin() + kMostBlockers, out_.blockers.end(),
                     [](const Between& a, const Between& b) { return a.free_bytes > b.free_bytes; });
    out_.blockers.resize(kMostBlockers);
  }

  // The stretch of pieces that is long enough and holds the fewest live bytes.
  void find_cheapest() {
    std::int64_t length = 0, live = 0;
    std::size_t last = 0;  // behind the stretch
    for (std::size_t first = 0; first < pieces_.size(); first++) {
      for (; last < pieces_.size() && length < wanted_->bytes; last++) {
        length = plus(length, pieces_[last].bytes);
        if (!pieces_[last].is_free()) live = plus(live, pieces_[last].bytes);
      }
      if (length < wanted_->bytes) return;
      if (!out_.cheapest || live < out_.cheapest->live_bytes) take_cheapest(first, last);
      length -= pieces_[first].bytes;
      if (!pieces_[first].is_free()) live -= pieces_[first].bytes;
    }
  }

  void take_cheapest(std::size_t first, std::size_t last) {
    Between found;
    for (std::size_t i = first; i < last; i++) {
      if (pieces_[i].is_free()) {
        found.free_bytes = plus(found.free_bytes, pieces_[i].bytes);
      } else {
        add_block(found, pieces_[i]);
      }
    }
    out_.cheapest = found;
  }

  const Allocations& rows_;
  const State& state_;
  const std::optional<Wanted>& wanted_;
  FreeMemory& out_;
  std::vector<Piece> pieces_;  // of the segment at hand
};

}  // namespace

FreeMemory free_memory(const AllocatorHistory& history, const State& state, const std::optional<Wanted>& wanted) {
  FreeMemory out;
  Walk(history, state, wanted, out).run();
  return out;
}

}  // namespace stepscope::snapshot
