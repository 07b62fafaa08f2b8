// Reader of rocprofv3's JSON (rocprofiler-sdk, ROCm 6.2 to 7): {"rocprofiler-sdk-tool": [process, …]}.
//
// Such files reach gigabytes, so the text is never in memory as a whole: formats/json_stream.h walks it, and each
// record is parsed for itself. Tables of names stand before the records that use them in every release of the tool;
// where somebody wrote them otherwise, the file is read a second time. Fields are probed for, no version is trusted.
#include <algorithm>
#include <map>
#include <memory>

#include "formats/json_text.h"
#include "read/file_text_trace.h"
#include "read/reader.h"
#include "read/rocprof_json/process.h"
#include "read/rocprof_json/records.h"

namespace stepscope::read {
namespace {

using namespace rocprof;
using formats::JsonStream;

constexpr std::string_view kTop = "rocprofiler-sdk-tool";
constexpr std::size_t kMostProcesses = 1024;  // each costs memory, however little the file says of it

bool recognizes(std::string_view head) {
  const std::size_t open = formats::skip_space(head, head.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  if (open >= head.size() || head[open] != '{') return false;
  const std::string_view rest = head.substr(formats::skip_space(head, open + 1));
  return rest.starts_with('"') && rest.substr(1).starts_with(kTop) && rest.substr(1 + kTop.size()).starts_with('"');
}

class Reading {
 public:
  Reading(std::string path, formats::TextFile& file, std::size_t window)
      : path_(std::move(path)), file_(file), in_(file, window > 0 ? window : JsonStream::kWindow), records_(in_) {}

  // `names`: of a pass before, by process; empty: this is the first.
  Result<void> read(std::vector<std::unique_ptr<Names>>& names) {
    known_ = !names.empty();
    std::string key;
    bool found = false;
    if (in_.enter_object()) {
      while (in_.next_member(key)) {
        found |= key == kTop;
        key == kTop ? read_processes(names) : in_.skip();
      }
    }
    if (in_.end() == JsonStream::End::failed) return fail(*in_.error());
    if (found) return {};
    return fail({ErrorKind::malformed, "ends or breaks before any process of the recording", path_, in_.offset(),
                 "Check that rocprofv3 had finished, and copy the file again"});
  }
  bool names_came_late() const { return late_; }

  std::vector<Trace> finish() {
    if (processes_.empty()) processes_.push_back(std::make_unique<Process>(path_, no_names_));
    note_end(*processes_.back());
    std::vector<Trace> traces;
    for (const auto& process : processes_) {
      process->finish();
      note_emptiness(*process);
      Trace& trace = process->trace;
      trace.source.path = path_;
      trace.source.format = "rocprof_json";
      trace.source.writer = "rocprofv3";
      trace.source.compressed = file_.compressed();
      trace.source.file_bytes = file_.file_bytes();
      trace.source.text_bytes = file_.compressed() ? file_.text_bytes() : file_.file_bytes();
      note_gzip_damage(trace, file_.damage());
      traces.push_back(std::move(trace));
    }
    return traces;
  }

 private:
  void read_processes(std::vector<std::unique_ptr<Names>>& names) {
    const bool list = in_.enter_array();
    for (bool more = !list || in_.next_element(); more; more = list && in_.next_element()) {
      const std::size_t number = processes_.size();
      if (number == kMostProcesses) {
        processes_.back()->note("too_many_processes", Severity::lost, "processes behind the first 1,024 were left out",
                                "", in_.offset());
        in_.skip();
        continue;
      }
      if (number == names.size()) names.push_back(std::make_unique<Names>());
      processes_.push_back(std::make_unique<Process>(path_, *names[number]));
      read_process(*processes_.back(), *names[number]);
    }
  }

  void read_process(Process& process, Names& names) {
    if (!in_.enter_object()) {
      process.note("process_without_tables", Severity::lost, "processes that are no objects were left out", "",
                   in_.offset());
      in_.skip();
      return;
    }
    bool records = false;
    for (std::string key; in_.next_member(key);) {
      if (key == "metadata") {
        records_.one(process, [&](const Record& record, std::uint64_t) { process.take_metadata(record); });
      } else if (key == "callback_records" || key == "buffer_records") {
        records = true;
        read_tables(process);
      } else if (const auto add = adds(key); add != nullptr) {
        late_ |= records && !known_;
        read_names(process, names, add);
      } else if (key == "strings" && in_.enter_object()) {
        late_ |= records && !known_;
        read_strings(process, names);
      } else {
        in_.skip();
      }
    }
  }

  using Add = void (Names::*)(const Record&);
  static Add adds(std::string_view table) {
    if (table == "agents") return &Names::add_agent;
    if (table == "counters") return &Names::add_counter;
    return table == "kernel_symbols" ? &Names::add_kernel : nullptr;
  }

  void read_strings(Process& process, Names& names) {
    for (std::string key; in_.next_member(key);) {
      if (key == "buffer_records") {
        read_names(process, names, &Names::add_kind);
      } else if (key == "marker_api") {
        read_names(process, names, &Names::add_marker);
      } else {
        in_.skip();
      }
    }
  }

  // In the second pass the names are there, but what is wrong with their tables must be said again.
  void read_names(Process& process, Names& names, Add add) {
    records_.each(process, [&](const Record& record, std::uint64_t) {
      if (!known_) (names.*add)(record);
    });
  }

  void read_tables(Process& process) {
    if (!in_.enter_object()) {
      in_.skip();
      return;
    }
    std::string others;
    for (std::string table; in_.next_member(table);) {
      if (Process::shows(table)) {
        records_.each(process, [&](const Record& record, std::uint64_t place) { process.take(table, record, place); });
      } else if (const std::uint64_t rows = records_.count(); rows > 0) {
        others += (others.empty() ? "" : ", ") + table + " (" + std::to_string(rows) + ")";
      }
    }
    if (others.empty()) return;
    process.note("tables_not_shown", Severity::info, "tables that are not shown, with their records: " + others);
  }

  void note_end(Process& process) const {
    if (in_.end() == JsonStream::End::cut) {
      process.note("cut_inside_record", Severity::lost, "the file ends before its records do; those before were read",
                   "Record again: the tool may have been stopped while it wrote", in_.offset());
    }
    if (in_.end() == JsonStream::End::broken) {
      process.note("broken_text", Severity::lost,
                   "the text cannot be understood from here on; what stands before was read",
                   "Look at the file around that byte", in_.offset());
    }
  }

  static void note_emptiness(Process& process) {
    const Trace& trace = process.trace;
    if (trace.slices.size() + trace.instants.size() + trace.counters.size() + trace.memory.size() > 0) return;
    process.note("no_events", Severity::info, "the recording of a process holds no events",
                 "Check what rocprofv3 was asked to trace, such as --kernel-trace or --sys-trace");
  }

  std::string path_;
  formats::TextFile& file_;
  JsonStream in_;
  Records records_;
  Names no_names_;
  std::vector<std::unique_ptr<Process>> processes_;  // none moves: records point at theirs
  bool known_ = false, late_ = false;
};

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  std::vector<std::unique_ptr<Names>> names;
  for (;;) {
    Result<formats::TextFile> file = formats::TextFile::open(path, options.max_text_bytes);
    if (!file) return fail(file.error());
    Reading reading(path, *file, options.chunk_bytes);
    if (const auto done = reading.read(names); !done) return fail(done.error());
    if (!reading.names_came_late()) return reading.finish();
  }
}

Result<std::vector<std::string>> record_text(const Trace& trace, std::span<const std::uint64_t> offsets) {
  Result<formats::TextFile> file = formats::TextFile::open(trace.source.path, UINT64_MAX);
  if (!file) return fail(file.error());
  JsonStream in(*file);
  std::vector<std::string> texts;
  std::uint64_t last = UINT64_MAX;
  for (const std::uint64_t offset : offsets) {
    if (offset == last) {  // a kernel and its counters are one record
      texts.push_back(texts.back());
      continue;
    }
    in.pass_to(last = offset);
    texts.emplace_back(in.value());
    if (!texts.back().empty()) continue;
    return fail({ErrorKind::changed, "the record is no longer where it was read", trace.source.path, offset,
                 "Open the file again"});
  }
  return texts;
}

}  // namespace

Reader rocprof_json_reader() {
  return {"rocprof_json", "rocprofv3's JSON (ROCm 6.2 and newer), plain or gzip", recognizes, read_file, record_text};
}

}  // namespace stepscope::read
