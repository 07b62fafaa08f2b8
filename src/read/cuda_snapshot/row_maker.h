// RowMaker: turns each dict and list of a snapshot into rows of the model as soon as the pickle is through with it.
//
// A dict is known by its keys (shapes.h), not by where it stands: a pickle gives the innermost first, and may give the
// same one in several places. Frames and stacks are interned. The rows of a list are consecutive mostly because its
// elements were; where they are not (one dict in two places), they are copied to the end of the table.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/key_index.h"
#include "formats/pickle.h"
#include "model/cuda_snapshot.h"
#include "read/cuda_snapshot/faults.h"
#include "read/cuda_snapshot/interned.h"

namespace stepscope::read::cuda {

using formats::Pickle;
using formats::PickleValue;
using Kind = PickleValue::Kind;

// What a PickleValue::row stands for: the type in its low 4 bits, above them a number.
enum class RowType : std::uint8_t {
  nothing,  // an empty list, of whatever
  frame,    // FrameId
  stack,    // StackId
  pool,     // index into pools
  event,    // rows of their tables …
  block,
  past,
  segment,
  annotation,
  events,  // … and lists of them: index into ranges
  blocks,
  history,
  segments,
  annotations,
  none,  // the value is no row
};

// The values of one dict by key.
struct Fields {
  Shape shape = Shape::root;
  std::uint64_t offset = 0;
  std::uint64_t present = 0;  // set of keys
  std::size_t known = 0;      // how many of all are in it
  std::array<PickleValue, kKeys> values;

  bool has(Word key) const { return present & keys(key); }
};

inline PickleValue row(RowType type, std::uint64_t number) {
  return PickleValue::row(number << 4 | static_cast<std::uint64_t>(type));
}
inline RowType type_of(PickleValue value) {
  return value.is(Kind::row) ? static_cast<RowType>(value.number() & 15) : RowType::none;
}
inline std::uint32_t number_of(PickleValue row) { return static_cast<std::uint32_t>(row.number() >> 4); }

class RowMaker final : public formats::PickleRows {
 public:
  explicit RowMaker(CudaSnapshot& snapshot);

  PickleValue whole(const Pickle& pickle, Kind kind, std::span<const PickleValue> items, std::uint64_t offset) override;
  std::size_t bytes() const override;

  // Takes the one value of the pickle. False: it is no snapshot.
  bool finish(const Pickle& pickle, PickleValue root);
  const Faults& faults() const { return faults_; }

 private:
  // row_maker.cc: dicts, whose values lie in fields_
  PickleValue dict(std::span<const PickleValue> pairs, std::uint64_t offset);
  void collect(std::span<const PickleValue> pairs);
  void judge_keys(std::span<const PickleValue> pairs);
  PickleValue frame();
  PickleValue event();
  std::uint32_t context();
  PickleValue block();
  PickleValue past();
  PickleValue segment();
  PickleValue annotation();

  // fields.cc: values of fields_; what is absent or wrong is the type's own absent value
  PickleValue field(Word key) const {
    return fields_.has(key) ? fields_.values[static_cast<std::size_t>(key)] : PickleValue();
  }
  void wrong(Word key) { faults_.note(FaultKind::wrong_type, fields_.shape, key, fields_.offset); }
  StringId text(Word key);
  std::int64_t integer(Word key);
  std::int64_t size(Word key);  // no negative ones
  std::uint64_t address(Word key);
  std::uint32_t stream(Word key);
  std::uint32_t pool(Word key);
  StackId stack(Word key);
  SnapshotRows rows(Word key, RowType type);
  Word word(Word key, Word first, Word last);  // Word::count: another one

  // lists.cc
  PickleValue list(std::span<const PickleValue> items, std::uint64_t offset);
  PickleValue stack_of(std::span<const PickleValue> items, std::uint64_t offset);
  PickleValue pool_of(std::uint64_t first, std::uint64_t second);
  template <class Copy>
  PickleValue rows_of(std::span<const PickleValue> items, RowType one, RowType many, std::uint64_t offset,
                      std::size_t next, const Copy& copy);
  PickleValue events_of(std::span<const PickleValue> items, std::uint64_t offset);
  StackId intern_stack();

  // root.cc
  void take_traces();
  void take_settings();
  void take_setting(std::string name, PickleValue value);
  void take_segments(SnapshotRows rows);
  void note_outside();

  CudaSnapshot& out_;
  Faults faults_;
  const Pickle* pickle_ = nullptr;
  Fields fields_;                     // of the dict at hand
  std::vector<FrameId> frames_;       // of the list at hand
  std::vector<SnapshotRows> ranges_;  // of lists
  Column<SnapshotSegment> segments_;  // of which the snapshot has those of its list
  Column<SnapshotAnnotation> annotations_;
  std::vector<bool> placed_;  // events that a list holds
  RowNumbers frame_numbers_, stack_numbers_, context_numbers_, pool_numbers_;
  KeyIndex streams_;
};

}  // namespace stepscope::read::cuda
