#include "read/cuda_snapshot/row_maker.h"

#include <algorithm>

namespace stepscope::read::cuda {
namespace {

constexpr std::uint64_t kFxKeys =
    keys(Word::fx_node_op, Word::fx_node_name, Word::fx_node_target, Word::fx_original_trace, Word::fx_node_info);
constexpr std::uint64_t kContextKeys =
    keys(Word::compile_context, Word::user_metadata, Word::category, Word::pool_id, Word::forward_frames);

template <class A, class B>
std::uint64_t both(A a, B b) {
  return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint64_t>(b);
}

}  // namespace

RowMaker::RowMaker(CudaSnapshot& snapshot) : out_(snapshot) {
  intern_words(out_.strings);
  out_.stack_begin.push_back(0);
}

std::size_t RowMaker::bytes() const {
  return out_.events.bytes() + out_.frames.bytes() + out_.stack_begin.bytes() + out_.stack_frames.bytes() +
         out_.contexts.bytes() + out_.blocks.bytes() + out_.history.bytes() + segments_.bytes() + annotations_.bytes() +
         ranges_.size() * sizeof(SnapshotRows) + frame_numbers_.bytes() + stack_numbers_.bytes() +
         context_numbers_.bytes();
}

PickleValue RowMaker::whole(const Pickle& pickle, Kind kind, std::span<const PickleValue> items, std::uint64_t offset) {
  pickle_ = &pickle;
  return kind == Kind::dict ? dict(items, offset) : list(items, offset);
}

PickleValue RowMaker::dict(std::span<const PickleValue> pairs, std::uint64_t offset) {
  collect(pairs);
  fields_.offset = offset;
  fields_.shape = shape_of(fields_.present);
  if (fields_.shape == Shape::root) return {};  // the snapshot itself, its settings or something unknown
  judge_keys(pairs);
  switch (fields_.shape) {
    case Shape::event: return event();
    case Shape::frame: return frame();
    case Shape::segment: return segment();
    case Shape::block: return block();
    case Shape::past: return past();
    case Shape::annotation: return annotation();
    default: return {};
  }
}

void RowMaker::collect(std::span<const PickleValue> pairs) {
  fields_.present = 0;
  fields_.known = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Word key = word_of(pickle_->text(pairs[i]));
    if (static_cast<std::size_t>(key) >= kKeys) continue;
    fields_.present |= keys(key);
    fields_.known++;
    fields_.values[static_cast<std::size_t>(key)] = pairs[i + 1];
  }
}

// Counts the keys that the shape does not have and those that it lacks.
void RowMaker::judge_keys(std::span<const PickleValue> pairs) {
  const ShapeKeys& known = keys_of(fields_.shape);
  if (fields_.known * 2 < pairs.size() || fields_.present & ~known.all) {
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const StringId key = pickle_->text(pairs[i]);
      const Word word = word_of(key);
      if (static_cast<std::size_t>(word) < kKeys && known.all & keys(word)) continue;
      faults_.note(FaultKind::unknown_key, fields_.shape, key, fields_.offset);
    }
  }
  const std::uint64_t lacking = (known.needed | known.lacking_once) & ~fields_.present;
  if (lacking == 0) return;
  for (std::size_t i = 0; i < kKeys; i++) {
    const auto word = static_cast<Word>(i);
    if (!(lacking & keys(word))) continue;
    const bool once = known.lacking_once & keys(word);
    faults_.note(once ? FaultKind::not_recorded : FaultKind::missing, fields_.shape, word, fields_.offset);
  }
}

PickleValue RowMaker::frame() {
  SnapshotFrame one;
  one.file = text(Word::filename);
  one.function = text(Word::name);
  // torch writes -1, the line of what is no source, as an unsigned number.
  if (pickle_->natural(field(Word::line)) != ~std::uint64_t{0}) one.line = integer(Word::line);
  if (fields_.present & kFxKeys) {
    one.fx_op = text(Word::fx_node_op);
    one.fx_node = text(Word::fx_node_name);
    one.fx_target = text(Word::fx_node_target);
    one.fx_trace = text(Word::fx_original_trace);
    one.fx_info = text(Word::fx_node_info);
  }
  const std::uint64_t hash = mixed(mixed(both(one.file, one.function), static_cast<std::uint64_t>(one.line)),
                                   static_cast<std::uint64_t>(one.fx_node));
  return row(RowType::frame, intern(frame_numbers_, out_.frames, hash, one));
}

PickleValue RowMaker::event() {
  AllocatorEvents& events = out_.events;
  const auto number = static_cast<std::uint32_t>(events.size());
  const Word action = word(Word::action, Word::alloc, Word::snapshot);
  if (!fields_.has(Word::addr) && !fields_.has(Word::device_free)) {
    faults_.note(FaultKind::missing, Shape::event, Word::addr, fields_.offset);
  }
  events.action.push_back(action == Word::count
                              ? AllocatorAction::other
                              : static_cast<AllocatorAction>(static_cast<int>(action) - static_cast<int>(Word::alloc)));
  events.address.push_back(address(fields_.has(Word::addr) ? Word::addr : Word::device_free));
  events.size_bytes.push_back(size(Word::size));
  events.time_us.push_back(integer(Word::time_us));
  events.stream.push_back(stream(Word::stream));
  events.stack.push_back(stack(Word::frames));
  events.context.push_back(context());
  placed_.push_back(false);
  return row(RowType::event, number);
}

std::uint32_t RowMaker::context() {
  if (!(fields_.present & kContextKeys)) return kNoEntry;
  const EventContext one{text(Word::compile_context), text(Word::user_metadata), text(Word::category),
                         pool(Word::pool_id), stack(Word::forward_frames)};
  const std::uint64_t hash = mixed(both(one.compile_context, one.user_metadata), both(one.category, one.forward_stack));
  return intern(context_numbers_, out_.contexts, mixed(hash, one.pool), one);
}

PickleValue RowMaker::block() {
  SnapshotBlock one;
  one.address = address(Word::address);
  one.size_bytes = size(Word::size);
  one.requested_bytes = size(Word::requested_size);
  one.stack = stack(Word::frames);
  one.history = rows(Word::history, RowType::history);
  if (one.history.count > 0) {
    const PastAllocation& newest = out_.history[one.history.first];
    if (!fields_.has(Word::frames)) one.stack = newest.stack;
    if (!fields_.has(Word::requested_size)) one.requested_bytes = newest.requested_bytes;
  }
  switch (word(Word::state, Word::active_allocated, Word::inactive)) {
    case Word::active_allocated: one.state = BlockState::active; break;
    case Word::active_pending_free:
    case Word::active_awaiting_free: one.state = BlockState::pending_free; break;
    case Word::inactive: one.state = BlockState::inactive; break;
    default: break;
  }
  out_.blocks.push_back(one);
  return row(RowType::block, out_.blocks.size() - 1);
}

PickleValue RowMaker::past() {
  out_.history.push_back({address(Word::addr), size(Word::real_size), stack(Word::frames)});
  return row(RowType::past, out_.history.size() - 1);
}

PickleValue RowMaker::segment() {
  SnapshotSegment one;
  one.address = address(Word::address);
  one.total_bytes = size(Word::total_size);
  one.allocated_bytes = size(Word::allocated_size);
  one.active_bytes = size(Word::active_size);
  one.requested_bytes = size(Word::requested_size);
  one.device = integer(Word::device);
  one.registration_counter = integer(Word::registration_counter);
  one.stream = stream(Word::stream);
  one.pool = pool(Word::segment_pool_id);
  one.type = text(Word::segment_type);
  one.stack = stack(Word::frames);
  one.blocks = rows(Word::blocks, RowType::blocks);
  if (const PickleValue value = field(Word::is_expandable); value.is(Kind::boolean)) {
    one.expandable = value.number() != 0;
  } else if (!value.is(Kind::unset)) {
    wrong(Word::is_expandable);
  }
  segments_.push_back(one);
  return row(RowType::segment, segments_.size() - 1);
}

PickleValue RowMaker::annotation() {
  annotations_.push_back({text(Word::name), text(Word::stage), integer(Word::device), integer(Word::time_us)});
  return row(RowType::annotation, annotations_.size() - 1);
}

}  // namespace stepscope::read::cuda
