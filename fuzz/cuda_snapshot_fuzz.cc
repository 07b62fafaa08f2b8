// Any bytes as a CUDA memory snapshot: read or refused with a place, never a crash or a hang; what is read is whole,
// and the pickle machine gives the same whatever the size of its window and of what its caller keeps. What is read has
// a history, and a state at its peak.
#include "formats/pickle.h"
#include "read/cuda_snapshot.h"
#include "snapshot/free_memory.h"
#include "snapshot/history.h"
#include "snapshot/state.h"
#include "trace_input.h"

using namespace stepscope;
using formats::PickleValue;

namespace {

// Keeps all containers, or none.
struct Rows final : formats::PickleRows {
  explicit Rows(bool keeps) : keeps(keeps) {}
  PickleValue whole(const formats::Pickle&, PickleValue::Kind, std::span<const PickleValue> items,
                    std::uint64_t offset) override {
    for (const PickleValue item : items) fuzz::must(!item.is(PickleValue::Kind::unset), "no value is unset");
    sum = sum * 31 + offset + items.size();
    return keeps ? PickleValue() : PickleValue::row(shown++);
  }
  std::size_t bytes() const override { return 0; }

  bool keeps;
  std::uint64_t shown = 0, sum = 0;
};

struct Outcome {
  std::string error;
  std::uint64_t containers = 0;  // where and how large
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome machine(const fuzz::MemoryFile& file, bool keeps, std::size_t window) {
  auto opened = formats::TextFile::open(file.path(), 4 << 20);
  if (!opened) return {to_text(opened.error())};
  StringPool texts;
  Rows rows(keeps);
  formats::Pickle pickle(*opened, file.path(), texts, rows, window);
  const auto root = pickle.read();
  if (root) return {"", rows.sum};
  const Error& error = root.error();
  fuzz::must(error.kind != ErrorKind::internal && !error.message.empty() && !error.hint.empty(), "a clear error");
  return {to_text(error), rows.sum};
}

void check_rows(SnapshotRows rows, std::size_t limit) {
  fuzz::must(rows.count == 0 || rows.first + std::size_t{rows.count} <= limit, "rows that exist");
}

template <class Id>
void check_id(Id id, std::size_t limit) {
  fuzz::must(static_cast<std::uint32_t>(id) == kNoEntry || static_cast<std::size_t>(id) < limit, "an id that exists");
}

void check_tables(const CudaSnapshot& s) {
  for (const FrameId frame : s.stack_frames.span())
    fuzz::must(static_cast<std::size_t>(frame) < s.frames.size(), "frame");
  for (const SnapshotFrame& frame : s.frames.span()) {
    for (const StringId id : {frame.file, frame.function, frame.fx_op, frame.fx_info}) check_id(id, s.strings.size());
  }
  for (const SnapshotSegment& segment : s.segments.span()) {
    check_rows(segment.blocks, s.blocks.size());
    check_id(segment.stream, s.streams.size());
    check_id(segment.pool, s.pools.size());
    check_id(segment.stack, s.stacks());
  }
  for (const SnapshotBlock& block : s.blocks.span()) {
    check_rows(block.history, s.history.size());
    check_id(block.stack, s.stacks());
  }
  for (const EventContext& context : s.contexts.span()) {
    check_id(context.pool, s.pools.size());
    check_id(context.forward_stack, s.stacks());
    check_id(context.user_metadata, s.strings.size());
  }
}

void check_events(const CudaSnapshot& s) {
  const AllocatorEvents& e = s.events;
  fuzz::must(e.address.size() == e.size() && e.size_bytes.size() == e.size() && e.time_us.size() == e.size() &&
                 e.stream.size() == e.size() && e.stack.size() == e.size() && e.context.size() == e.size(),
             "columns of one length");
  for (std::size_t row = 0; row < e.size(); row++) {
    fuzz::must(e.action[row] <= AllocatorAction::other, "an action");
    fuzz::must(e.size_bytes[row] >= 0 || e.size_bytes[row] == kNotRecorded, "no negative size");
    check_id(e.stream[row], s.streams.size());
    check_id(e.stack[row], s.stacks());
    check_id(e.context[row], s.contexts.size());
  }
  for (const SnapshotRows device : s.devices) check_rows(device, e.size());
}

void check_history(const CudaSnapshot& s) {
  const AllocatorHistory history = snapshot::history_of(s);
  for (const Issue& issue : snapshot::issues_of(s, history)) fuzz::must(issue.count > 0, "issues with a count");
  for (const SnapshotDevice& device : history.devices) {
    check_rows(device.allocations, history.allocations.size());
    check_rows(device.ranges, history.ranges.size());
    fuzz::must(device.peak <= device.last_moment(), "a peak within the events");
    for (const std::uint32_t moment : {0u, device.peak, device.last_moment()}) {
      const snapshot::State state = snapshot::state_at(history, device, moment);
      const snapshot::FreeMemory memory = snapshot::free_memory(history, state, snapshot::Wanted{1 << 20, 0, 0});
      fuzz::must(memory.largest_run <= memory.free && memory.free <= memory.reserved, "parts of what is held");
    }
  }
}

// A page of torch's viewer is no pickle; it holds one.
bool is_page(const fuzz::MemoryFile& file) {
  auto opened = formats::TextFile::open(file.path(), 4 << 20);
  if (!opened) return false;
  std::string head(4096, '\0');
  head.resize(opened->read(head.data(), head.size()).value_or(0));
  const std::size_t first = head.find_first_not_of(" \n\r\t");
  return first != head.npos && head[first] == '<';
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  read::looks_like_cuda_snapshot({reinterpret_cast<const char*>(data), size});
  const Outcome kept = machine(file, true, formats::ByteWindow::kWindow);
  fuzz::must(kept == machine(file, true, 64), "the window changes nothing");
  const Outcome rows = machine(file, false, 64);
  fuzz::must(kept.error.empty() <= rows.error.empty(), "what is well with containers is well with rows");
  const auto snapshot = read::read_cuda_snapshot(file.path(), 4 << 20);
  if (!snapshot) {
    fuzz::must(snapshot.error().kind != ErrorKind::internal && !snapshot.error().message.empty(), "a clear error");
    return 0;
  }
  fuzz::must(kept.error.empty() || is_page(file), "no snapshot from a broken pickle");
  for (const Issue& issue : snapshot->issues) {
    fuzz::must(issue.count > 0 && issue.offset.value_or(0) <= snapshot->text_bytes, "issues with a place");
  }
  check_tables(*snapshot);
  check_events(*snapshot);
  check_history(*snapshot);
  return 0;
}
