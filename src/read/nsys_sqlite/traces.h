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

namespace stepscope::read::nsys {

// A globalTid or globalPid holds hardware and VM in its upper bits, then 24 bits of process and 24 of thread.
constexpr std::int64_t process_of(std::int64_t global) { return global == kAbsent ? kAbsent : global >> 24; }
constexpr std::int64_t pid_of(std::int64_t global) { return global >> 24 & 0xffffff; }
constexpr std::int64_t tid_of(std::int64_t global) { return global & 0xffffff; }

// 32-bit ids of which all bits are set mean "none".
constexpr std::int64_t id_or_absent(std::int64_t id) { return id == 0xffffffff || id < 0 ? kAbsent : id; }

struct DeviceRow {
  std::int64_t correlation = kAbsent;
  std::int64_t device = kAbsent, stream = kAbsent;
  std::int64_t grid[3] = {0, 0, 0}, block[3] = {0, 0, 0};
  std::int64_t registers = kAbsent, shared_bytes = kAbsent, bytes = kAbsent;
  std::int64_t wait_stream = kAbsent, wait_correlation = kAbsent;
};

class TraceBuilder {
 public:
  TraceBuilder(const Export& file, std::int64_t process);

  Trace trace;
  std::int64_t process() const { return process_; }  // kAbsent: rows do not say
  bool owns(std::int64_t global) const { return process_ == kAbsent || process_of(global) == process_; }

  StringId text(std::string_view bytes);    // any bytes
  StringId string(std::int64_t string_id);  // of table StringIds
  CategoryId category(std::string_view name) { return category(name, slice_kind(name)); }
  CategoryId category(std::string_view name, SliceKind kind);
  TrackId thread(std::int64_t global_tid) { return host_track(global_tid, ""); }
  // A further lane of a thread, for what does not nest with its calls.
  TrackId lane(std::int64_t global_tid, std::string_view suffix) { return host_track(global_tid, suffix); }
  TrackId stream(std::int64_t device, std::int64_t stream);
  TrackId counter_lane(std::string_view process, std::string_view thread);

  // none: the row has no usable times and was left out, which is noted.
  SliceId add_slice(Table table, std::int64_t row, std::int64_t start_ns, std::int64_t end_ns, StringId name,
                    TrackId track, CategoryId category);
  bool add_instant(Table table, std::int64_t row, std::int64_t time_ns, StringId name, TrackId track,
                   CategoryId category);
  void add_device_row(SliceId slice, const DeviceRow& row);
  void add_counter(std::int64_t time_ns, StringId name, StringId key, TrackId track, double value);

  void note(std::string_view code, Severity severity, std::string_view sentence, std::string_view advice = "");
  // Names of processes and threads, issues about texts; after all rows.
  void finish(const std::unordered_map<std::int64_t, std::string>& process_names,
              const std::unordered_map<std::int64_t, std::int64_t>& thread_names);

 private:
  struct TrackOrigin {
    std::int64_t global_tid = kAbsent;  // kAbsent: a lane of a device
    std::string suffix;
  };
  TrackId host_track(std::int64_t global_tid, std::string_view suffix);
  TrackId add_track(Track track, TrackOrigin origin);
  bool usable_time(std::int64_t time_ns);
  std::uint32_t place(Table table, std::int64_t row);

  const Export& file_;
  std::int64_t process_;
  std::vector<StringId> strings_;  // by index in the export
  std::unordered_map<std::string, CategoryId> categories_;
  std::unordered_map<std::string, TrackId> tracks_;
  std::vector<TrackOrigin> origins_;
  std::int64_t last_tid_ = kAbsent, last_device_ = kAbsent, last_stream_ = kAbsent;
  TrackId last_thread_ = TrackId::none, last_stream_track_ = TrackId::none;
  std::uint64_t repaired_texts_ = 0;
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
