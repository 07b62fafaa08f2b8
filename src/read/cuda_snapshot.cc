#include "read/cuda_snapshot.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "read/cuda_snapshot/row_maker.h"
#include "read/file_text_trace.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

constexpr std::size_t kPageHead = 4096;

Error no_snapshot(const std::string& path) {
  return {
      ErrorKind::unrecognized,
      "is a pickle of plain data, but no memory snapshot of torch: it has neither 'segments' nor 'device_traces'", path,
      std::nullopt,
      "Record one: stepscope run --memory-history -- python train.py, or torch.cuda.memory._dump_snapshot in the job"};
}

// Where the base64 of a snapshot begins in a page of torch's viewer; npos: it is none.
std::size_t place_in_page(std::string_view head) {
  head = head.substr(0, kPageHead);
  const std::size_t first = head.find_first_not_of(" \n\r\t");
  if (first == head.npos || head[first] != '<' || head.find("add_local_files") == head.npos) return head.npos;
  constexpr std::string_view kBefore = "\"base64\": \"";
  const std::size_t at = head.find(kBefore);
  return at == head.npos ? at : at + kBefore.size();
}

struct Opened {
  formats::TextFile file;
  bool is_page = false;
};

Result<Opened> open_pickle(const std::string& path, std::uint64_t max_text_bytes) {
  auto file = formats::TextFile::open(path, max_text_bytes);
  if (!file) return fail(file.error());
  std::string head(kPageHead, '\0');
  const auto got = file->read(head.data(), head.size());
  if (!got) return fail(got.error());
  head.resize(*got);
  auto again = formats::TextFile::open(path, max_text_bytes);
  if (!again) return fail(again.error());
  const std::size_t at = place_in_page(head);
  if (at != head.npos) {
    if (const auto skipped = again->decode_base64_from(at); !skipped) return fail(skipped.error());
  }
  return Opened{std::move(*again), at != head.npos};
}

}  // namespace

bool looks_like_cuda_snapshot(std::string_view head) {
  if (place_in_page(head) != head.npos) return true;
  if (head.size() < 2 || head[0] != '\x80' || head[1] < 2 || head[1] > 5) return false;
  constexpr std::array marks{"segments", "device_traces", "segment_type", "external_annotations", "allocator_settings"};
  return std::any_of(marks.begin(), marks.end(), [&](const char* mark) { return head.find(mark) != head.npos; });
}

Result<CudaSnapshot> read_cuda_snapshot(const std::string& path, std::uint64_t max_text_bytes) {
  auto opened = open_pickle(path, max_text_bytes);
  if (!opened) return fail(opened.error());
  formats::TextFile& file = opened->file;
  CudaSnapshot snapshot;
  cuda::RowMaker rows(snapshot);
  formats::Pickle pickle(file, path, snapshot.strings, rows);
  const auto root = pickle.read();
  if (!root) return fail(root.error());
  if (!rows.finish(pickle, *root)) return fail(no_snapshot(path));
  snapshot.path = path;
  snapshot.text_bytes = pickle.offset();
  snapshot.protocol = pickle.protocol();
  snapshot.compressed = file.compressed();
  snapshot.file_bytes = file.file_bytes();
  snapshot.issues = rows.faults().issues(snapshot.strings, path);
  if (!opened->is_page && pickle.bytes_behind()) {  // the viewer pads with zeros
    snapshot.issues.push_back({"snapshot_bytes_behind", Severity::info,
                               "bytes behind the end of the pickle were left out", "", 1, path, snapshot.text_bytes,
                               std::nullopt});
  }
  return snapshot;
}

namespace {

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  Result<CudaSnapshot> snapshot = read_cuda_snapshot(path, options.max_text_bytes);
  if (!snapshot) return fail(snapshot.error());
  std::vector<Trace> traces(1);
  Trace& trace = traces.front();
  trace.source = {.path = path,
                  .format = "cuda_snapshot",
                  .writer = "torch",
                  .compressed = snapshot->compressed,
                  .file_bytes = snapshot->file_bytes,
                  .text_bytes = snapshot->text_bytes,
                  .events = snapshot->events.size()};
  trace.issues = std::move(snapshot->issues);
  trace.snapshot = std::make_shared<const CudaSnapshot>(*std::move(snapshot));
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "a memory snapshot has no slices with arguments", trace.source.path,
               std::nullopt, "Use the tables snapshot_events and snapshot_frames"});
}

}  // namespace

Reader cuda_snapshot_reader() {
  return {"cuda_snapshot", "Memory snapshots of torch (torch.cuda.memory._dump_snapshot), and pages of its viewer",
          looks_like_cuda_snapshot, read_file, no_text};
}

}  // namespace stepscope::read
