// Reader of NVIDIA Nsight Systems: the SQLite databases that `nsys export` makes, of every version, and through them
// nsys's own reports. The work is done in nsys_sqlite/: export.h has the scheme, parts.h the order.
//
// Places of slices are table and rowid (export.h), so that the row of a slice can be shown again.
#include <sys/stat.h>

#include <algorithm>

#include "read/nsys_sqlite/parts.h"
#include "read/nsys_sqlite/report_file.h"
#include "read/nsys_sqlite/row_text.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

using namespace nsys;

bool recognizes(std::string_view head) {
  return head.starts_with(formats::kSqliteMagic) || head.starts_with(kReportMagic);
}

Error no_export(const Export& file) {
  std::string names;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(file.tables().size(), kShown); i++) {
    names += (i == 0 ? "" : ", ") + file.tables()[i];
  }
  if (file.tables().size() > kShown) names += ", …";
  return {ErrorKind::unrecognized,
          names.empty() ? "is an SQLite database without any table"
                        : "is an SQLite database, but no export of nsys: its tables are " + names,
          file.file().path(), std::nullopt, "Give a database made by: nsys export --type sqlite REPORT.nsys-rep"};
}

// What stands in the file and is not shown, so that nobody takes silence for absence.
void note_unread_tables(Export& file) {
  static constexpr std::array shown_nowhere{"SCHED_EVENTS",
                                            "COMPOSITE_EVENTS",
                                            "OPENACC_LAUNCH_EVENTS",
                                            "OPENACC_DATA_EVENTS",
                                            "OPENACC_OTHER_EVENTS",
                                            "OPENMP_API_CALLS",
                                            "MPI_P2P_EVENTS",
                                            "MPI_COLLECTIVES_EVENTS",
                                            "MPI_OTHER_EVENTS",
                                            "UCP_SUBMIT_EVENTS",
                                            "CUDNN_EVENTS",
                                            "CUBLAS_EVENTS",
                                            "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
                                            "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
                                            "FECS_EVENTS",
                                            "GPU_CONTEXT_SWITCH_EVENTS",
                                            "OSRT_FILE_ACCESS_EVENTS"};
  std::string names;
  for (const std::string_view table : shown_nowhere) {
    if (!file.has(table)) continue;
    auto count = file.file().query("SELECT count(*) FROM " + formats::quoted(table));
    if (!count || !count->next() || count->integer(0) <= 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(table) + " (" + std::to_string(count->integer(0)) + ")";
  }
  if (names.empty()) return;
  file.issues.push_back({"tables_not_shown", Severity::info, "tables that are not shown, with their rows: " + names, "",
                         1, file.file().path(), std::nullopt, std::nullopt});
}

void note_emptiness(Trace& trace) {
  const std::size_t rows = trace.slices.size() + trace.instants.size() + trace.counters.size() + trace.memory.size();
  if (rows > 0) return;
  add_issue(trace.issues, {"no_events", Severity::info, "the export holds no events",
                           "Check that the program ran while nsys recorded, and what nsys was asked to trace", 1,
                           trace.source.path, std::nullopt, std::nullopt});
}

std::vector<Trace> finish(Export& file, Traces& traces, const std::string& path) {
  struct stat info {};
  const bool known = stat(file.file().path().c_str(), &info) == 0;
  note_unread_tables(file);
  traces.first();  // one trace at least
  std::vector<Trace> out;
  for (const auto& builder : traces.all()) {
    Trace& trace = builder->trace;
    trace.source.path = path;
    trace.source.format = "nsys_sqlite";
    trace.source.writer = "nsys";
    trace.source.file_bytes = trace.source.text_bytes = known ? static_cast<std::uint64_t>(info.st_size) : 0;
    if (out.empty()) trace.issues.insert(trace.issues.begin(), file.issues.begin(), file.issues.end());
    for (Issue& issue : trace.issues) issue.file = path;
    note_emptiness(trace);
    out.push_back(std::move(trace));
  }
  return out;
}

Result<std::vector<Trace>> read_export(const std::string& database, const std::string& path) {
  Result<Export> opened = Export::open(database);
  if (!opened) return fail(opened.error());
  Export& file = *opened;
  if (!file.is_nsys()) return fail(no_export(file));
  Traces traces(file);
  const ContextDevices devices = read_device_work(file, traces);
  read_device_waits(file, traces, devices);
  read_calls(file, traces);
  read_nvtx(file, traces);
  read_counters(file, traces);
  read_about(file, traces);
  return finish(file, traces, path);
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions&) {
  if (!is_report(path)) return read_export(path, path);
  const Result<ExportedReport> exported = ExportedReport::make(path);
  if (!exported) return fail(exported.error());
  return read_export(exported->path(), path);
}

Result<std::vector<std::string>> event_text(const Trace& trace, std::span<const std::uint64_t> places) {
  if (is_report(trace.source.path)) {
    return fail({ErrorKind::unsupported, "the rows of an nsys report can be shown only from its export",
                 trace.source.path, std::nullopt, "Open the database that nsys export --type sqlite makes"});
  }
  return row_texts(trace.source.path, places);
}

}  // namespace

Reader nsys_sqlite_reader() {
  return {"nsys_sqlite", "nsys: its SQLite exports, and its reports (.nsys-rep) where nsys is installed", recognizes,
          read_file, event_text};
}

}  // namespace stepscope::read
