// Export: an nsys export that is open. Which tables and columns it has, its strings, and a table's rows by column name.
//
// No version is trusted: nsys makes a table only when it has rows, and columns came and went between releases. A column
// that is not there reads as absent, a table that is not there has no rows.
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/sqlite_file.h"
#include "model/trace.h"

namespace stepscope::read::nsys {

// Tables of which rows become rows of a trace. Their numbers are part of a row's place: only ever append.
enum class Table : std::uint8_t {
  kernel,
  memcpy,
  memset,
  graph,
  synchronization,
  cuda_event,
  runtime,
  graph_node,
  os_runtime,
  overhead,
  profiler_overhead,
  nvtx,
  memory_usage,
  gpu_metrics,
  nic_metric,
};
inline constexpr std::array<std::string_view, 15> kTableNames{"CUPTI_ACTIVITY_KIND_KERNEL",
                                                              "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                              "CUPTI_ACTIVITY_KIND_MEMSET",
                                                              "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                                              "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                                              "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                                                              "CUPTI_ACTIVITY_KIND_RUNTIME",
                                                              "CUDA_GRAPH_NODE_EVENTS",
                                                              "OSRT_API",
                                                              "CUPTI_ACTIVITY_KIND_OVERHEAD",
                                                              "PROFILER_OVERHEAD",
                                                              "NVTX_EVENTS",
                                                              "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                                              "GPU_METRICS",
                                                              "NET_NIC_METRIC"};
constexpr std::string_view name_of(Table table) { return kTableNames[static_cast<std::size_t>(table)]; }

// Where a row stands, as one number: table and rowid. It is what event_text() is asked with.
constexpr int kRowBits = 48;
constexpr std::uint64_t place_of(Table table, std::int64_t row) {
  const bool fits = row >= 0 && row < std::int64_t{1} << kRowBits;
  return static_cast<std::uint64_t>(table) << kRowBits | static_cast<std::uint64_t>(fits ? row : 0);
}

class Export {
 public:
  static Result<Export> open(const std::string& path);

  const formats::SqliteFile& file() const { return file_; }
  const std::vector<std::string>& tables() const { return tables_; }
  bool has(std::string_view table) const;
  bool is_nsys() const;

  // The index of a string in `texts`; npos when there is no such id.
  std::size_t string_index(std::int64_t id) const;
  std::string_view string_at(std::size_t index) const { return texts_[index]; }
  std::string_view string(std::int64_t id) const;
  std::size_t strings() const { return texts_.size(); }

  // id → column `value` of a small table (an ENUM_… table, META_DATA_EXPORT …).
  std::map<std::int64_t, std::string> names(std::string_view table, std::string_view value) const;

  std::vector<Issue> issues;  // of the file as a whole

 private:
  friend class Scan;
  void note_broken(std::string_view table, std::uint64_t rows, const std::string& why);
  void load_strings();

  formats::SqliteFile file_;
  std::vector<std::string> tables_;
  std::vector<std::int64_t> ids_;  // ascending
  std::vector<std::string> texts_;
};

// One pass over a table. Without the table, or without one of its first `needed` columns, there are no rows.
class Scan {
 public:
  Scan(Export& file, std::string_view table, std::initializer_list<std::string_view> columns, std::size_t needed);

  bool next();
  std::int64_t id() const { return row_ids_ ? rows_->integer(0) : 0; }
  std::int64_t operator[](int column) const { return rows_->integer(column + 1); }  // kAbsent: none
  double real(int column) const { return rows_->real(column + 1); }
  std::string_view text(int column) const { return rows_->text(column + 1); }
  bool has(int column) const { return rows_->has(column + 1); }

 private:
  Export& file_;
  std::string_view table_;
  std::optional<formats::SqliteRows> rows_;
  bool row_ids_ = true;
  std::uint64_t count_ = 0;
};

}  // namespace stepscope::read::nsys
