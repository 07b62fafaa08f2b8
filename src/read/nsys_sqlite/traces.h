// TraceBuilder: one process of an export becomes one Trace. Traces: which process a row belongs to.
//
// Each process with device work is a rank of its own. Everything else that nsys saw (the launcher, data loader workers,
// other programs of the machine) goes with the first of them, on tracks that carry their own process; without any
// device work there is one trace for all.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/nsys_sqlite/export.h"
#include "read/trace_rows.h"

namespace stepscope::read::nsys {

// A globalTid or globalPid holds hardware and VM in its upper bits, then 24 bits of process and 24 of thread.
constexpr std::int64_t process_of(std::int64_t global) { return global == kAbsent ? kAbsent : global >> 24; }
constexpr std::int64_t pid_of(std::int64_t global) { return global >> 24 & 0xffffff; }
constexpr std::int64_t tid_of(std::int64_t global) { return global & 0xffffff; }

// 32-bit ids of which all bits are set mean "none".
constexpr std::int64_t id_or_absent(std::int64_t id) { return id == 0xffffffff || id < 0 ? kAbsent : id; }

class TraceBuilder : public TraceRows {
 public:
  TraceBuilder(const Export& file, std::int64_t process);

  std::int64_t process() const { return process_; }  // kAbsent: rows do not say
  bool owns(std::int64_t global) const { return process_ == kAbsent || process_of(global) == process_; }

  StringId string(std::int64_t string_id);  // of table StringIds
  TrackId thread(std::int64_t global_tid) { return host_track(global_tid, ""); }
  // A further lane of a thread, for what does not nest with its calls.
  TrackId thread_lane(std::int64_t global_tid, std::string_view suffix) { return host_track(global_tid, suffix); }

  SliceId add_slice(Table table, std::int64_t row, std::int64_t start_ns, std::int64_t end_ns, StringId name,
                    TrackId track, CategoryId category) {
    return TraceRows::add_slice(place_of(table, row), start_ns, end_ns, name, track, category);
  }
  bool add_instant(Table table, std::int64_t row, std::int64_t time_ns, StringId name, TrackId track,
                   CategoryId category) {
    return TraceRows::add_instant(place_of(table, row), time_ns, name, track, category);
  }
  // Names of processes and threads, issues about texts; after all rows.
  void finish(const std::unordered_map<std::int64_t, std::string>& process_names,
              const std::unordered_map<std::int64_t, std::int64_t>& thread_names);

 private:
  struct HostTrack {
    std::int64_t global_tid;
    std::string suffix;
    TrackId track;
  };
  TrackId host_track(std::int64_t global_tid, std::string_view suffix);

  const Export& file_;
  std::int64_t process_;
  std::vector<StringId> strings_;  // by index in the export
  std::unordered_map<std::string, TrackId> tracks_;
  std::vector<HostTrack> host_tracks_;
  std::int64_t last_tid_ = kAbsent;
  TrackId last_thread_ = TrackId::none;
};

class Traces {
 public:
  explicit Traces(Export& file) : file_(file) {}

  TraceBuilder& with_device_work(std::int64_t global_pid);
  // In the order of their devices, without those of which no row was usable; called once, when all device work is in.
  void settle();
  TraceBuilder& of(std::int64_t global);
  TraceBuilder& of_device(std::int64_t device);  // the first that uses it, else the first
  TraceBuilder& first();
  std::vector<std::unique_ptr<TraceBuilder>>& all() { return builders_; }

 private:
  Export& file_;
  std::vector<std::unique_ptr<TraceBuilder>> builders_;  // none moves: rows point at theirs
  std::unordered_map<std::int64_t, std::size_t> by_process_;
};

}  // namespace stepscope::read::nsys
