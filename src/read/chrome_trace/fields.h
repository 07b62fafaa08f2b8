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
  kWaitStream,
  kWaitCorrelation,
  kNumbers,
};
// Arguments that are reals.
enum Real : std::uint8_t { kBlocksPerSm, kWarpsPerSm, kOccupancy, kReals };
// Arguments kept as raw text (arrays) or strings.
enum Text : std::uint8_t { kDims, kTypes, kCallStack, kCollectiveKind, kDtype, kGroupName, kGroupRanks, kTexts };
// Arguments that are [x, y, z].
enum Triple : std::uint8_t { kGrid, kBlock, kTriples };

enum class FieldType : std::uint8_t { none, number, real, text, triple };

struct Field {
  FieldType type = FieldType::none;
  std::uint8_t index = 0;
};

// Where an argument with this key goes; type none: not stored (still reachable by the event's place).
// `key` must be followed by 8 readable bytes.
Field argument_field(const char* key, std::size_t size);

}  // namespace stepscope::read::chrome_trace
