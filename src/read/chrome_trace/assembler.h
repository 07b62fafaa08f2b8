// Assembler: takes the batches of all workers in file order and builds the Trace.
//
// Names in a batch are its worker's own; they get their ids in the Trace when a committed row first uses them, so ids
// depend on the text alone. Not thread-safe: the pipeline commits under its lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "read/chrome_trace/batch.h"
#include "read/chrome_trace/tolerant_walk.h"

namespace stepscope::read::chrome_trace {

class Assembler {
 public:
  Assembler(Trace& trace, std::size_t workers) : trace_(trace), workers_(workers) {}

  // Learns the names that a worker met; to be called for every batch, committed or not, in the worker's order.
  void learn(std::size_t worker, const Batch& batch);
  void commit(std::size_t worker, Batch& batch);
  // When all text was read: pairs begin and end halves, applies metadata events, turns tallies into issues.
  void finish(const DamageTally& damage);

 private:
  struct Worker {
    std::vector<std::string_view> raw;  // by local string
    std::vector<StringId> strings;      // by local string; none: not yet used
    std::vector<RawTrack> raw_tracks;
    std::vector<TrackId> tracks;
    std::vector<LocalId> raw_categories;
    std::vector<CategoryId> categories;
  };

  StringId string(Worker& worker, LocalId local);
  TrackId track(Worker& worker, std::uint32_t local);
  CategoryId category(Worker& worker, std::uint16_t local);
  StringId intern_raw(std::string_view raw);
  StringId id_text(Worker& worker, const RawId& id);
  static std::uint64_t track_key(StringId process, StringId thread) {
    return std::uint64_t{static_cast<std::uint32_t>(process)} << 32 | static_cast<std::uint32_t>(thread);
  }
  TrackId find_track(StringId process, StringId thread);

  void commit_slices(Worker& worker, const Batch& batch);
  void commit_details(Worker& worker, const Batch& batch, std::uint32_t first);
  void commit_rest(Worker& worker, const Batch& batch);
  void append_strings(Worker& worker, Column<StringId>& to, const Column<LocalId>& from);
  void append_optional(Worker& worker, OptionalColumn<StringId>& to, const Column<LocalId>& from);
  void append_tracks(Worker& worker, Column<TrackId>& to, const Column<std::uint32_t>& from);
  void append_categories(Worker& worker, Column<CategoryId>& to, const Column<std::uint16_t>& from);

  void pair_halves();
  void apply_metadata(std::string_view event);
  void name_processes();
  std::uint64_t offset_of(SliceId slice) const;
  void note_zero_durations();
  void drop_zero_times();
  void mark_device_tracks();
  void report(const DamageTally& damage);

  Trace& trace_;
  std::vector<Worker> workers_;
  std::unordered_map<std::uint64_t, TrackId> track_index_;  // by track_key()
  std::unordered_map<StringId, CategoryId> category_index_;
  std::unordered_map<StringId, std::string> process_names_;
  std::vector<Half> halves_;
  Column<StringId> scratch_;
  StringPool metadata_;
  DefectTally defects_{};
  StringPool repaired_;  // raw texts that had something wrong
};

}  // namespace stepscope::read::chrome_trace
