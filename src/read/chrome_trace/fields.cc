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
    Key{"Src Rank", {FieldType::number, kSourceRank}},
    Key{"Dst Rank", {FieldType::number, kTargetRank}},
    Key{"wait_on_stream", {FieldType::number, kWaitStream}},
    Key{"wait_on_cuda_event_record_corr_id", {FieldType::number, kWaitCorrelation}},
    Key{"blocks per SM", {FieldType::real, kBlocksPerSm}},
    Key{"warps per SM", {FieldType::real, kWarpsPerSm}},
    Key{"est. achieved occupancy %", {FieldType::real, kOccupancy}},
    Key{"memory bandwidth (GB/s)", {FieldType::real, kCopySpeed}},
    Key{"Input Dims", {FieldType::text, kDims}},
    Key{"Input dims", {FieldType::text, kDims}},
    Key{"Input type", {FieldType::text, kTypes}},
    Key{"Concrete Inputs", {FieldType::text, kConcrete}},
    Key{"Call stack", {FieldType::text, kCallStack}},
    Key{"Collective name", {FieldType::text, kCollectiveKind}},
    Key{"dtype", {FieldType::text, kDtype}},
    Key{"Process Group Name", {FieldType::text, kGroupName}},
    Key{"Process Group Ranks", {FieldType::text, kGroupRanks}},
    Key{"In split size", {FieldType::text, kInSplit}},
    Key{"Out split size", {FieldType::text, kOutSplit}},
    Key{"grid", {FieldType::triple, kGrid}},
    Key{"block", {FieldType::triple, kBlock}},
};

}  // namespace

// Tries odd multipliers until no two keys meet; deterministic and done once.
ArgumentTable::ArgumentTable() {
  std::uint64_t candidate = 0x9E3779B97F4A7C15ull;
  while (!fill(candidate | 1)) candidate = candidate * 6364136223846793005ull + 1442695040888963407ull;
}

bool ArgumentTable::fill(std::uint64_t multiplier) {
  slots_.fill({});
  multiplier_ = multiplier;
  for (const Key& key : kKeys) {
    char padded[64] = {};
    std::memcpy(padded, key.text.data(), key.text.size());
    const Words words = words_of(padded, key.text.size());
    Slot& slot = slots_[index(words, key.text.size(), multiplier)];
    if (!slot.text.empty()) return false;
    slot = {words, key.text, key.field};
  }
  return true;
}

const ArgumentTable kArguments;

}  // namespace stepscope::read::chrome_trace
