// The values of one dict, checked: None is taken as absent, anything else of another type as damage.
#include "read/cuda_snapshot/row_maker.h"

namespace stepscope::read::cuda {
namespace {

bool absent(PickleValue value) { return value.is(Kind::unset) || value.is(Kind::none); }

}  // namespace

StringId RowMaker::text(Word key) {
  const PickleValue value = field(key);
  const StringId id = pickle_->text(value);
  if (id == StringId::none && !absent(value)) wrong(key);
  return id;
}

std::int64_t RowMaker::integer(Word key) {
  const PickleValue value = field(key);
  if (const auto number = pickle_->integer(value)) return *number;
  if (!absent(value)) wrong(key);
  return kNotRecorded;
}

std::int64_t RowMaker::size(Word key) {
  const std::int64_t bytes = integer(key);
  if (bytes >= 0 || bytes == kNotRecorded) return bytes;
  wrong(key);
  return kNotRecorded;
}

std::uint64_t RowMaker::address(Word key) {
  const PickleValue value = field(key);
  if (const auto number = pickle_->natural(value)) return *number;
  if (!absent(value)) wrong(key);
  return kNoAddress;
}

std::uint32_t RowMaker::stream(Word key) {
  const PickleValue value = field(key);
  if (const auto number = pickle_->natural(value)) return streams_[*number];
  if (!absent(value)) wrong(key);
  return kNoEntry;
}

std::uint32_t RowMaker::pool(Word key) {
  const PickleValue value = field(key);
  if (type_of(value) == RowType::pool) return number_of(value);
  if (!absent(value)) wrong(key);
  return kNoEntry;
}

StackId RowMaker::stack(Word key) {
  const PickleValue value = field(key);
  const RowType type = type_of(value);
  if (type == RowType::stack) return static_cast<StackId>(number_of(value));
  if (type == RowType::nothing) {
    frames_.clear();
    return intern_stack();
  }
  if (!absent(value)) wrong(key);
  return StackId::none;
}

SnapshotRows RowMaker::rows(Word key, RowType type) {
  const PickleValue value = field(key);
  if (type_of(value) == type) return ranges_[number_of(value)];
  if (!absent(value) && type_of(value) != RowType::nothing) wrong(key);
  return {};
}

Word RowMaker::word(Word key, Word first, Word last) {
  const StringId id = text(key);
  const Word found = word_of(id);
  if (found >= first && found <= last) return found;
  if (id != StringId::none) faults_.note(FaultKind::unknown_word, fields_.shape, id, fields_.offset);
  return Word::count;
}

}  // namespace stepscope::read::cuda
