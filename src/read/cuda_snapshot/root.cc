// The snapshot itself: which rows its lists hold, and the settings.
#include <algorithm>

#include "read/cuda_snapshot/row_maker.h"

namespace stepscope::read::cuda {

bool RowMaker::finish(const Pickle& pickle, PickleValue root) {
  pickle_ = &pickle;
  if (root.is(Kind::dict)) {
    const auto pairs = pickle.items(root);
    collect(pairs);
    if (!(fields_.present & keys_of(Shape::root).all)) return false;
    fields_.shape = Shape::root;
    fields_.offset = 0;
    judge_keys(pairs);
    take_traces();
    take_segments(rows(Word::segments, RowType::segments));
    const SnapshotRows kept = rows(Word::external_annotations, RowType::annotations);
    out_.annotations.append(annotations_.span().subspan(kept.first, kept.count));
    take_settings();
  } else if (type_of(root) == RowType::segments) {  // torch 1.12 to 2.0
    take_segments(ranges_[number_of(root)]);
  } else {
    return false;
  }
  note_outside();
  for (std::uint32_t i = 0; i < streams_.size(); i++) out_.streams.push_back(streams_.key(i));
  return true;
}

void RowMaker::take_traces() {
  const PickleValue value = field(Word::device_traces);
  if (value.is(Kind::unset) || value.is(Kind::none)) return;
  out_.has_traces = true;
  if (type_of(value) == RowType::nothing) return;
  if (!value.is(Kind::list) && !value.is(Kind::tuple)) return wrong(Word::device_traces);
  for (const PickleValue device : pickle_->items(value)) {
    const bool events = type_of(device) == RowType::events;
    if (!events && type_of(device) != RowType::nothing) wrong(Word::device_traces);
    out_.devices.push_back(events ? ranges_[number_of(device)] : SnapshotRows{});
  }
}

// Blocks of old files have no address: they lie one behind the other. A list of blocks that several segments share is
// walked once.
void RowMaker::take_segments(SnapshotRows kept) {
  out_.segments.append(segments_.span().subspan(kept.first, kept.count));
  for (const SnapshotSegment& segment : out_.segments.span()) {
    std::uint64_t next = segment.address;
    for (std::uint32_t i = 0; i < segment.blocks.count && next != kNoAddress; i++) {
      SnapshotBlock& block = out_.blocks[segment.blocks.first + i];
      if (block.address != kNoAddress) break;
      block.address = next;
      next = block.size_bytes == kNotRecorded ? kNoAddress : next + static_cast<std::uint64_t>(block.size_bytes);
    }
  }
}

void RowMaker::take_settings() {
  const PickleValue value = field(Word::allocator_settings);
  if (value.is(Kind::unset) || value.is(Kind::none)) return;
  if (!value.is(Kind::dict)) return wrong(Word::allocator_settings);
  const auto name_of = [&](PickleValue key) {
    const auto number = pickle_->integer(key);
    return number ? std::to_string(*number) : std::string(pickle_->text_of(key));
  };
  const auto settings = pickle_->items(value);
  for (std::size_t i = 0; i + 1 < settings.size(); i += 2) {
    const std::string name = name_of(settings[i]);
    if (!settings[i + 1].is(Kind::dict)) {
      take_setting(name, settings[i + 1]);
      continue;
    }
    const auto parts = pickle_->items(settings[i + 1]);
    for (std::size_t j = 0; j + 1 < parts.size(); j += 2) take_setting(name + "." + name_of(parts[j]), parts[j + 1]);
  }
}

void RowMaker::take_setting(std::string name, PickleValue value) {
  if (value.is(Kind::boolean)) {
    out_.settings.push_back({std::move(name), value.number() != 0});
  } else if (const auto number = pickle_->integer(value)) {
    out_.settings.push_back({std::move(name), *number});
  } else if (const auto real = pickle_->real(value)) {
    out_.settings.push_back({std::move(name), *real});
  } else if (value.is(Kind::text)) {
    out_.settings.push_back({std::move(name), std::string(pickle_->text_of(value))});
  } else {
    faults_.note(FaultKind::wrong_type, Shape::setting, out_.strings.intern(name), 0);
  }
}

// Dicts that became rows and stand in no list of the snapshot: somebody put them elsewhere.
void RowMaker::note_outside() {
  const auto note = [&](Shape shape, std::uint64_t count) {
    if (count > 0) faults_.note(FaultKind::outside, shape, StringId::none, 0, count);
  };
  note(Shape::event, static_cast<std::uint64_t>(std::count(placed_.begin(), placed_.end(), false)));
  note(Shape::segment, segments_.size() - std::min(segments_.size(), out_.segments.size()));
  note(Shape::annotation, annotations_.size() - std::min(annotations_.size(), out_.annotations.size()));
}

}  // namespace stepscope::read::cuda
