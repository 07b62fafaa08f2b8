#include "read/chrome_trace/fields.h"

namespace stepscope::read::chrome_trace {
namespace {

struct Key {
  std::string_view text;
  Field field;
};

// Spellings of all ages and vendors: "external id" is Kineto of 2021, "stream_id" and "mem size" are MTIA.
constexpr std::array kKeys{
    Key{"External id", {FieldType::number, kExternalId}},
    Key{"external id", {FieldType::number, kExternalId}},
    Key{"Record function id", {FieldType::number, kRecordFunctionId}},
    Key{"Sequence number", {FieldType::number, kSequence}},
    Key{"Fwd thread id", {FieldType::number, kFwdThread}},
    Key{"correlation", {FieldType::number, kCorrelation}},
    Key{"stream", {FieldType::number, kStream}},
    Key{"device", {FieldType::number, kDevice}},
    Key{"bytes", {FieldType::number, kBytes}},
    Key{"size", {FieldType::number, kBytes}},
    Key{"Bytes", {FieldType::number, kBytes}},
    Key{"registers per thread", {FieldType::number, kRegisters}},
    Key{"shared memory", {FieldType::number, kSharedBytes}},
    Key{"Addr", {FieldType::number, kAddress}},
    Key{"Total Allocated", {FieldType::number, kTotalAllocated}},
    Key{"Total Reserved", {FieldType::number, kTotalReserved}},
    Key{"Device Type", {FieldType::number, kDeviceType}},
    Key{"Device Id", {FieldType::number, kDeviceIndex}},
    Key{"In msg nelems", {FieldType::number, kInElements}},
    Key{"Out msg nelems", {FieldType::number, kOutElements}},
    Key{"Group size", {FieldType::number, kGroupSize}},
    Key{"Seq", {FieldType::number, kCollectiveSequence}},
    Key{"wait_on_stream", {FieldType::number, kWaitStream}},
    Key{"wait_on_cuda_event_record_corr_id", {FieldType::number, kWaitCorrelation}},
    Key{"blocks per SM", {FieldType::real, kBlocksPerSm}},
    Key{"warps per SM", {FieldType::real, kWarpsPerSm}},
    Key{"est. achieved occupancy %", {FieldType::real, kOccupancy}},
    Key{"Input Dims", {FieldType::text, kDims}},
    Key{"Input dims", {FieldType::text, kDims}},
    Key{"Input type", {FieldType::text, kTypes}},
    Key{"Call stack", {FieldType::text, kCallStack}},
    Key{"Collective name", {FieldType::text, kCollectiveKind}},
    Key{"dtype", {FieldType::text, kDtype}},
    Key{"Process Group Name", {FieldType::text, kGroupName}},
    Key{"Process Group Ranks", {FieldType::text, kGroupRanks}},
    Key{"grid", {FieldType::triple, kGrid}},
    Key{"block", {FieldType::triple, kBlock}},
};

constexpr std::size_t kSlots = 512;

std::uint64_t key_hash(const char* key, std::size_t size, std::uint64_t multiplier) {
  std::uint64_t first = formats::load8(key);
  std::uint64_t last = 0;
  if (size < 8) {
    first &= (std::uint64_t{1} << (8 * size)) - 1;
  } else {
    last = formats::load8(key + size - 8);
  }
  return ((first ^ (last << 1 | last >> 63)) + size) * multiplier >> 55;  // 9 bits: kSlots
}

struct Table {
  std::array<std::uint8_t, kSlots> slot{};  // 1 + index into kKeys; 0: free
  std::uint64_t multiplier = 0;

  // Tries odd multipliers until no two keys meet; deterministic and done once.
  Table() {
    std::uint64_t candidate = 0x9E3779B97F4A7C15ull;
    while (!fill(candidate)) candidate = candidate * 6364136223846793005ull + 1442695040888963407ull;
  }
  bool fill(std::uint64_t candidate) {
    slot.fill(0);
    multiplier = candidate | 1;
    for (std::size_t i = 0; i < kKeys.size(); i++) {
      char padded[64] = {};
      std::memcpy(padded, kKeys[i].text.data(), kKeys[i].text.size());
      auto& taken = slot[key_hash(padded, kKeys[i].text.size(), multiplier)];
      if (taken != 0) return false;
      taken = static_cast<std::uint8_t>(i + 1);
    }
    return true;
  }
};

const Table table;

}  // namespace

Field argument_field(const char* key, std::size_t size) {
  if (size == 0) return {};
  const std::uint8_t found = table.slot[key_hash(key, size, table.multiplier)];
  if (found == 0) return {};
  const Key& candidate = kKeys[found - 1u];
  return candidate.text.size() == size && std::memcmp(candidate.text.data(), key, size) == 0 ? candidate.field
                                                                                             : Field{};
}

}  // namespace stepscope::read::chrome_trace
