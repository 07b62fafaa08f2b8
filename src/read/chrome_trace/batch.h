// Batch: the rows of one chunk of text, with names that only the worker that parsed it knows (local ids).
//
// A batch is scratch memory: filled from one chunk, copied into the Trace in file order by the assembler, then reused.
// Numbers are wide here (int64, kAbsent where missing); they are narrowed on the way into the Trace.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/column.h"
#include "base/string_pool.h"
#include "model/trace.h"

namespace stepscope::read::chrome_trace {

using LocalId = std::uint32_t;  // an id of the worker's own pool
inline constexpr LocalId kNoId = 0xffffffff;

// A process or thread id: a number, or text that is no number.
struct RawId {
  std::int64_t number = kAbsent;
  LocalId text = kNoId;

  bool operator==(const RawId&) const = default;
};

struct RawTrack {
  RawId process, thread;
  LocalId lane = kNoId;  // for async lanes: the "category id" text that tells them apart

  bool operator==(const RawTrack&) const = default;
};

// Why events were changed or left out, counted; the first place of each is kept.
enum class Defect : std::uint8_t {
  missing_duration,  // X without dur
  missing_time,      // no usable ts
  missing_name,
  missing_kind,      // no usable ph
  missing_category,  // a slice without cat
  negative_duration,
  duplicate_key,
  unknown_kind,  // a ph that is not shown
  wide_number,   // an integer of more than 64 bits
  bad_number,    // a number field whose text is no number
  count_,
};

struct Tally {
  std::uint64_t count = 0;
  std::uint64_t first_offset = 0;
};

using DefectTally = std::array<Tally, static_cast<std::size_t>(Defect::count_)>;

// A begin or end half of a slice (B, E, b, e), to be paired when all text was read.
struct Half {
  std::int64_t time_ns;
  LocalId name;
  std::uint32_t track;     // local until commit, then a TrackId
  std::uint32_t category;  // local until commit, then a CategoryId
  std::uint64_t place;     // byte offset in the text
  bool begin;
};

struct Batch {
  std::uint64_t text_offset = 0;  // of the chunk's first byte; places are relative to it
  std::uint64_t events = 0;

  // slices
  Column<std::int64_t> start_ns, dur_ns;
  Column<LocalId> name, track;
  Column<std::uint16_t> category;
  Column<std::uint32_t> place;
  // ops: `row` is the slice's row in this batch
  struct {
    Column<std::uint32_t> row;
    Column<std::int64_t> external_id, record_function_id, sequence, fwd_thread, stream;
    Column<LocalId> dims, types, concrete, call_stack;
  } ops;
  struct {
    Column<std::uint32_t> row;
    Column<std::int64_t> correlation, external_id;
  } launches;
  struct {
    Column<std::uint32_t> row;
    Column<std::int64_t> correlation, external_id, stream, bytes, wait_stream, wait_correlation;
    Column<std::int32_t> device;
    Column<std::uint32_t> grid[3], block[3], registers, shared_bytes;
    Column<float> blocks_per_sm, warps_per_sm, occupancy_percent;
  } device;
  struct {
    Column<std::uint32_t> row;
    Column<double> gb_per_s;
  } copy_speeds;
  struct {
    Column<std::uint32_t> row;
    Column<LocalId> kind, dtype, group_name, group_ranks, in_split, out_split;
    Column<std::int64_t> in_elements, out_elements, group_size, sequence, peer;
  } collectives;
  struct {
    Column<std::int64_t> time_ns, bytes, address, total_allocated, total_reserved;
    Column<LocalId> track;
    Column<std::int16_t> device_type, device_index;
  } memory;
  struct {
    Column<std::int64_t> time_ns, id;  // text ids: see Flows
    Column<LocalId> id_text, track;
    Column<std::uint16_t> category;
    Column<char> phase;
  } flows;
  struct {
    Column<std::int64_t> time_ns;
    Column<LocalId> name, track;
    Column<std::uint16_t> category;
    Column<std::uint32_t> place;
  } instants;
  struct {
    Column<std::int64_t> time_ns;
    Column<LocalId> name, key, track;
    Column<double> value;
  } counters;
  std::vector<Half> halves;

  // What the worker met for the first time in this chunk, in order of first use; the texts lie in its arena.
  std::vector<std::pair<LocalId, std::string_view>> new_strings;  // raw JSON text, still escaped
  std::vector<std::pair<std::uint16_t, LocalId>> new_categories;  // local category → local string
  std::vector<std::pair<std::uint32_t, RawTrack>> new_tracks;     // local track → its ids
  std::vector<std::string_view> new_metadata;                     // raw text of "M" events
  DefectTally defects{};

  void clear();
};

}  // namespace stepscope::read::chrome_trace
