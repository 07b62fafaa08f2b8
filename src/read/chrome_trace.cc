// Reader of the Chrome trace event format as Kineto, torch.profiler, Chrome and many others write it: {"traceEvents":
// […]} or a bare array, plain or gzip. The work is done in chrome_trace/: see pipeline.cc for the scheme.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "formats/json_text.h"
#include "read/chrome_trace/pipeline.h"
#include "read/chrome_trace/split_ranks.h"
#include "read/chrome_trace/top_level.h"
#include "read/file_text_trace.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

using namespace chrome_trace;

constexpr std::size_t kHeadLimit = 64 << 20;
constexpr std::size_t kBrokenHeadLimit = 1 << 20;
constexpr std::size_t kLeastChunk = 256;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0 || fstat(fd_, &info_) != 0) return;
    bytes_ = data_end();
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }
  bool is_regular() const { return S_ISREG(info_.st_mode); }
  std::uint64_t bytes() const { return bytes_; }  // without a hole at the end
  std::uint64_t file_bytes() const { return static_cast<std::uint64_t>(info_.st_size); }
  enum class Change { none, grew, changed };
  // What happened to the file since it was opened.
  Change change() const {
    struct stat now {};
    if (fstat(fd_, &now) != 0 || now.st_size < info_.st_size) return Change::changed;
    if (now.st_size > info_.st_size) return Change::grew;
    const bool same_time = now.st_mtim.tv_sec == info_.st_mtim.tv_sec && now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec;
    return same_time ? Change::none : Change::changed;
  }
  bool is_gzip() const {
    unsigned char magic[2] = {};
    return pread(fd_, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  }

 private:
  // Writers that reserve space leave a hole behind what they wrote: it is not looked through.
  std::uint64_t data_end() const {
    constexpr int kMostPieces = 1000;
    off_t end = 0;
    for (int i = 0; i < kMostPieces && end < info_.st_size; i++) {
      const off_t data = lseek(fd_, end, SEEK_DATA);
      if (data < 0) return errno == ENXIO ? static_cast<std::uint64_t>(end) : file_bytes();
      end = lseek(fd_, data, SEEK_HOLE);
      if (end < 0) break;
    }
    return file_bytes();
  }

  int fd_;
  struct stat info_ {};
  std::uint64_t bytes_ = 0;
};

Error cannot_open(const std::string& path) {
  return {ErrorKind::unreadable, std::string("cannot be opened: ") + std::strerror(errno), path, std::nullopt,
          "Check the path and its permissions"};
}

// An object whose first keys are among these is a trace, wherever its events stand.
constexpr std::string_view kTraceKeys[] = {"\"traceEvents\"",       "\"schemaVersion\"", "\"deviceProperties\"",
                                           "\"displayTimeUnit\"",   "\"otherData\"",     "\"distributedInfo\"",
                                           "\"systemTraceEvents\"", "\"stackFrames\"",   "\"traceName\""};

bool recognizes(std::string_view head) {
  std::size_t at = head.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  at = formats::skip_space(head, at);
  if (at >= head.size()) return false;
  if (head[at] == '[') {
    std::size_t next = formats::skip_space(head, at + 1);
    if (next < head.size() && head[next] == ',') next = formats::skip_space(head, next + 1);
    if (next >= head.size()) return false;
    if (head[next] == ']') return true;
    const auto has = [&](std::string_view key) { return head.find(key, next) != std::string_view::npos; };
    return head[next] == '{' && (has("\"ph\"") || (has("\"name\"") && has("\"ts\"")));
  }
  if (head[at] != '{') return false;
  return std::any_of(std::begin(kTraceKeys), std::end(kTraceKeys),
                     [&](std::string_view key) { return head.find(key, at) != std::string_view::npos; });
}

Result<Head> find_head(Trace& trace, TextSource& source) {
  for (std::size_t size = 64 << 10; size <= kHeadLimit; size *= 4) {
    const Result<std::string_view> text = source.peek(size);
    if (!text) return fail(text.error());
    if (const auto head = find_events(trace, *text)) return *head;
    if (text->size() < size) break;
  }
  const Result<std::string_view> text = source.peek(kBrokenHeadLimit);
  if (!text) return fail(text.error());
  if (const auto head = find_events_by_text(*text)) {
    trace.issues.push_back({"broken_header", Severity::lost, "what stands before the events could not be understood",
                            "", 1, trace.source.path, 0, std::nullopt});
    return *head;
  }
  return fail({ErrorKind::malformed, "no event list (traceEvents) was found before the text ends or breaks",
               trace.source.path, std::nullopt, "Check that the export was complete"});
}

void read_tail(Trace& trace, const PipelineEnd& end, bool bare_array) {
  const std::string& file = trace.source.path;
  std::size_t used = 0;
  if (!bare_array && end.closed) {
    const std::string object = "{" + end.tail;
    std::size_t behind = 0;
    for (const auto& [key, raw_key, value] : formats::members(object, &behind)) {
      if (key != "traceEvents") {
        apply_top_level(trace, key, value);
        continue;
      }
      add_issue(trace.issues,
                {"second_event_list", Severity::lost, "the file has a second list of events; it was not read",
                 "Split the file in two", 1, file,
                 end.tail_offset + static_cast<std::uint64_t>(value.data() - object.data()) - 1, std::nullopt});
    }
    used = behind - 1;
  }
  const std::size_t rest = std::min(end.tail.find_first_not_of(kBlank, used), end.tail.size());
  const bool object_open = !bare_array && (!end.closed || used == 0 || end.tail[used - 1] != '}');
  if (object_open) {
    add_issue(trace.issues, {"not_closed", Severity::repaired, "the JSON is not closed at its end",
                             "Record again if the end matters: the writer may have been stopped", 1, file,
                             end.closed ? end.tail_offset + used : trace.source.text_bytes, std::nullopt});
  }
  const std::uint64_t trailing = end.tail.size() - rest + end.tail_dropped;
  if (trailing > 0) {
    const bool more_json = end.tail[rest] == '{' || end.tail[rest] == '[' || end.tail_dropped > 0;
    add_issue(trace.issues,
              {"trailing_text", more_json ? Severity::lost : Severity::repaired,
               "bytes behind the end of the trace were not read", "Split the file if it holds a second trace", trailing,
               file, end.tail_offset + rest, std::nullopt});
  }
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  const OpenFile file(path);
  if (file.fd() < 0) return fail(cannot_open(path));
  if (!file.is_regular()) {
    return fail({ErrorKind::unreadable, "is not a regular file (a folder, pipe, socket or device)", path, std::nullopt,
                 "Write the trace to a file first"});
  }
  Trace trace;
  trace.source.path = path;
  trace.source.format = "chrome_trace";
  trace.source.writer = "chrome";
  trace.source.compressed = file.is_gzip();
  trace.source.file_bytes = file.file_bytes();
  const std::size_t chunk = options.chunk_bytes > 0 ? std::max(options.chunk_bytes, kLeastChunk) : kChunkBytes;
  const std::unique_ptr<TextSource> source =
      trace.source.compressed ? gzip_source(file.fd(), file.bytes(), path, chunk, options.max_text_bytes)
                              : plain_source(file.fd(), file.bytes(), path, chunk);
  const Result<Head> head = find_head(trace, *source);
  if (!head) return fail(head.error());
  source->start(head->events_begin);
  const unsigned threads = std::max(1u, options.threads);
  Assembler assembler(trace, threads + 1);
  const Result<PipelineEnd> end = run_pipeline(*source, assembler, threads, options.tolerant_only, path);
  if (!end) return fail(end.error());
  trace.source.text_bytes = source->text_bytes();
  read_tail(trace, *end, head->bare_array);
  note_gzip_damage(trace, source->damage());
  const OpenFile::Change change = file.change();
  if (change == OpenFile::Change::changed) {
    return fail({ErrorKind::changed, "the file was changed while it was read", path, std::nullopt,
                 "Open it again when its writer has ended"});
  }
  if (change == OpenFile::Change::grew) {
    add_issue(trace.issues, {"grew", Severity::info, "the file grew while it was read; the size at the start counts",
                             "Open it again when its job has ended", 1, path, std::nullopt, std::nullopt});
  }
  if (is_merged(trace)) return split_ranks(std::move(trace));
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  return traces;
}

// The text of one event: grown until the object closes.
Result<std::string> text_at(TextSource& source, std::uint64_t offset, const std::string& path) {
  ChunkText chunk;
  std::string text;
  while (text.size() < kEventLimit) {
    const Result<bool> more = source.next(chunk);
    if (!more) return fail(more.error());
    if (!*more) break;
    if (chunk.offset + chunk.size <= offset) continue;
    const std::uint64_t skip = offset > chunk.offset ? offset - chunk.offset : 0;
    text.append(chunk.text() + skip, chunk.size - skip);
    const std::size_t end = formats::skip_value(text, 0);
    if (end != std::string::npos) return text.substr(0, end);
  }
  return fail({ErrorKind::changed, "the event is no longer where it was read", path, offset, "Open the file again"});
}

Result<std::vector<std::string>> event_text(const Trace& trace, std::span<const std::uint64_t> offsets) {
  const OpenFile file(trace.source.path);
  if (file.fd() < 0) return fail(cannot_open(trace.source.path));
  std::vector<std::string> texts;
  for (const std::uint64_t offset : offsets) {
    const auto source = trace.source.compressed
                            ? gzip_source(file.fd(), file.bytes(), trace.source.path, kChunkBytes, UINT64_MAX)
                            : plain_source(file.fd(), file.bytes(), trace.source.path, kChunkBytes);
    if (!trace.source.compressed) source->start(offset);
    Result<std::string> text = text_at(*source, offset, trace.source.path);
    if (!text) return fail(text.error());
    texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace

Reader chrome_trace_reader() {
  return {"chrome_trace", "Kineto, torch.profiler and Chrome trace event JSON, plain or gzip", recognizes, read_file,
          event_text};
}

}  // namespace stepscope::read
