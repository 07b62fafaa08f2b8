// Lists and tuples: stacks of frames, ids of pools, and rows of the tables in a row.
#include <algorithm>
#include <cstring>

#include "read/cuda_snapshot/row_maker.h"

namespace stepscope::read::cuda {

PickleValue RowMaker::list(std::span<const PickleValue> items, std::uint64_t offset) {
  if (items.empty()) return row(RowType::nothing, 0);
  switch (type_of(items[0])) {
    case RowType::frame: return stack_of(items, offset);
    case RowType::event: return events_of(items, offset);
    case RowType::block:
      return rows_of(items, RowType::block, RowType::blocks, offset, out_.blocks.size(),
                     [&](std::uint32_t from) { out_.blocks.push_back(out_.blocks[from]); });
    case RowType::past:
      return rows_of(items, RowType::past, RowType::history, offset, out_.history.size(),
                     [&](std::uint32_t from) { out_.history.push_back(out_.history[from]); });
    case RowType::segment:
      return rows_of(items, RowType::segment, RowType::segments, offset, segments_.size(),
                     [&](std::uint32_t from) { segments_.push_back(segments_[from]); });
    case RowType::annotation:
      return rows_of(items, RowType::annotation, RowType::annotations, offset, annotations_.size(),
                     [&](std::uint32_t from) { annotations_.push_back(annotations_[from]); });
    default: break;
  }
  if (items.size() != 2) return {};
  const auto first = pickle_->natural(items[0]), second = pickle_->natural(items[1]);
  return first && second ? pool_of(*first, *second) : PickleValue();
}

PickleValue RowMaker::pool_of(std::uint64_t first, std::uint64_t second) {
  return row(RowType::pool, intern(pool_numbers_, out_.pools, mixed(first, second), MemoryPool{first, second}));
}

PickleValue RowMaker::stack_of(std::span<const PickleValue> items, std::uint64_t offset) {
  frames_.resize(items.size());
  std::size_t others = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    frames_[i] = static_cast<FrameId>(number_of(items[i]));
    others += type_of(items[i]) == RowType::frame ? 0 : 1;
  }
  if (others > 0) {
    faults_.note(FaultKind::wrong_type, Shape::list, Word::frames, offset);
    frames_.clear();
    for (const PickleValue item : items) {
      if (type_of(item) == RowType::frame) frames_.push_back(static_cast<FrameId>(number_of(item)));
    }
  }
  return row(RowType::stack, static_cast<std::uint64_t>(intern_stack()));
}

// The stack of frames_.
StackId RowMaker::intern_stack() {
  std::uint64_t hash = frames_.size();
  std::size_t i = 0;
  for (; i + 2 <= frames_.size(); i += 2) {  // two at once: each round waits for the one before
    std::uint64_t both;
    std::memcpy(&both, frames_.data() + i, sizeof both);
    hash = (hash ^ both) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  if (i < frames_.size()) hash ^= static_cast<std::uint64_t>(frames_[i]);
  bool is_new = false;
  const std::uint32_t number = stack_numbers_.find(mixed(hash, frames_.size()), is_new, [&](std::uint32_t other) {
    const auto known = out_.frames_of(static_cast<StackId>(other));
    if (known.size() != frames_.size()) return false;
    return known.empty() || std::memcmp(known.data(), frames_.data(), known.size_bytes()) == 0;
  });
  if (is_new) {
    out_.stack_frames.append(frames_);
    out_.stack_begin.push_back(out_.stack_frames.size());
  }
  return static_cast<StackId>(number);
}

// `next`: the row that copy() would make.
template <class Copy>
PickleValue RowMaker::rows_of(std::span<const PickleValue> items, RowType one, RowType many, std::uint64_t offset,
                              std::size_t next, const Copy& copy) {
  const std::uint32_t first = number_of(items[0]);
  const auto in_a_row = [&](const PickleValue& item) {
    return item == row(one, first + static_cast<std::uint64_t>(&item - items.data()));
  };
  SnapshotRows rows{first, static_cast<std::uint32_t>(items.size())};
  if (!std::all_of(items.data(), items.data() + items.size(), in_a_row)) {
    rows = {static_cast<std::uint32_t>(next), 0};
    for (const PickleValue item : items) {
      if (type_of(item) == one) {
        copy(number_of(item));
        rows.count++;
      } else {
        faults_.note(FaultKind::wrong_type, Shape::list, StringId::none, offset);
      }
    }
  }
  ranges_.push_back(rows);
  return row(many, ranges_.size() - 1);
}

PickleValue RowMaker::events_of(std::span<const PickleValue> items, std::uint64_t offset) {
  AllocatorEvents& events = out_.events;
  for (const PickleValue item : items) {
    if (type_of(item) == RowType::event) placed_[number_of(item)] = true;
  }
  return rows_of(items, RowType::event, RowType::events, offset, events.size(), [&](std::uint32_t from) {
    events.action.push_back(events.action[from]);
    events.address.push_back(events.address[from]);
    events.size_bytes.push_back(events.size_bytes[from]);
    events.time_us.push_back(events.time_us[from]);
    events.stream.push_back(events.stream[from]);
    events.stack.push_back(events.stack[from]);
    events.context.push_back(events.context[from]);
    placed_.push_back(true);
  });
}

}  // namespace stepscope::read::cuda
