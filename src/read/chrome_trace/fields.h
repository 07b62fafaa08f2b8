// The keys of an event and of its arguments that are stored, found by a perfect hash over the key's raw text.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/number_text.h"

namespace stepscope::read::chrome_trace {

// Arguments that are integers, in the order of Event::number.
enum Number : std::uint8_t {
  kExternalId,
  kRecordFunctionId,
  kSequence,
  kFwdThread,
  kCorrelation,
  kStream,
  kDevice,
  kBytes,
  kRegisters,
  kSharedBytes,
  kAddress,
  kTotalAllocated,
  kTotalReserved,
  kDeviceType,
  kDeviceIndex,
  kInElements,
  kOutElements,
  kGroupSize,
  kCollectiveSequence,
  kSourceRank,
  kTargetRank,
  kWaitStream,
  kWaitCorrelation,
  kNumbers,
};
// Arguments that are reals.
enum Real : std::uint8_t { kBlocksPerSm, kWarpsPerSm, kOccupancy, kCopySpeed, kReals };
// Arguments kept as raw text (arrays) or strings.
enum Text : std::uint8_t {
  kDims,
  kTypes,
  kConcrete,
  kCallStack,
  kCollectiveKind,
  kDtype,
  kGroupName,
  kGroupRanks,
  kInSplit,
  kOutSplit,
  kTexts
};
// Arguments that are [x, y, z].
enum Triple : std::uint8_t { kGrid, kBlock, kTriples };

enum class FieldType : std::uint8_t { none, number, real, text, triple };

struct Field {
  FieldType type = FieldType::none;
  std::uint8_t index = 0;
};

// The keys of arguments in a table without collisions, each slot with all that a comparison needs.
class ArgumentTable {
 public:
  ArgumentTable();

  // Where an argument with this key goes; type none: not stored (still reachable by the event's place).
  // `key` must be followed by 8 readable bytes.
  Field find(const char* key, std::size_t size) const {
    if (size == 0) return {};
    const Words words = words_of(key, size);
    const Slot& slot = slots_[index(words, size, multiplier_)];
    if (slot.text.size() != size || slot.words.first != words.first || slot.words.last != words.last) return {};
    return size <= 16 || std::memcmp(slot.text.data(), key, size) == 0 ? slot.field : Field{};
  }

 private:
  static constexpr std::size_t kSlots = 512;
  struct Words {  // the first and the last 8 characters
    std::uint64_t first = 0, last = 0;
  };
  struct Slot {
    Words words;
    std::string_view text;
    Field field;
  };
  static Words words_of(const char* key, std::size_t size) {
    const std::uint64_t first = formats::load8(key);
    if (size < 8) return {first & ((std::uint64_t{1} << (8 * size)) - 1), 0};
    return {first, formats::load8(key + size - 8)};
  }
  static std::size_t index(Words words, std::size_t size, std::uint64_t multiplier) {
    const std::uint64_t mixed = (words.first ^ (words.last << 1 | words.last >> 63)) + size;
    return mixed * multiplier >> 55;  // 9 bits: kSlots
  }
  bool fill(std::uint64_t multiplier);

  std::array<Slot, kSlots> slots_{};
  std::uint64_t multiplier_ = 0;
};

extern const ArgumentTable kArguments;

}  // namespace stepscope::read::chrome_trace
