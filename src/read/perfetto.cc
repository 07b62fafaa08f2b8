// Reader of Perfetto traces: our own (`stepscope convert --to perfetto`), of which it makes the traces that were
// written, and anybody's, of which it takes the track events: slices, instants, counters, arrows, names of processes
// and threads.
//
// A trace is a list of packets, each with its length in front. A broken packet is left out; where a length is wrong,
// nothing behind it can be found, and the reading ends there.
#include <algorithm>
#include <unordered_map>

#include "formats/file_text.h"
#include "read/file_text_trace.h"
#include "read/perfetto/arguments.h"
#include "read/perfetto/packets.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

using namespace perfetto;

constexpr int kPacketsLookedAt = 16;
constexpr char kPacketTag = wire::trace::packet << 3 | 2;

// The members of a packet that are numbers; all others are messages, texts or bytes.
constexpr std::uint32_t kNumbers[] = {3, 8, 10, 13, 41, 42, 58, 79, 87, 98};

bool may_be_packet_field(const ProtoField& field) {
  const bool number = std::find(std::begin(kNumbers), std::end(kNumbers), field.number) != std::end(kNumbers);
  const bool known = field.number < 256 || field.number == 900 || (field.number >= 1000 && field.number < 2000);
  return known && field.type == (number ? WireType::varint : WireType::bytes);
}

// Packets one after the other, of members that packets have; the last one may be cut by the end of what is known.
bool recognizes(std::string_view head) {
  std::size_t at = 0, members = 0;
  for (int i = 0; i < kPacketsLookedAt && at < head.size(); i++) {
    if (head[at++] != kPacketTag) return false;
    const auto size = formats::read_varint(head, at);
    if (!size) return at >= head.size() && members > 0;
    const bool is_cut = *size > head.size() - at;
    ProtoFields fields(head.substr(at, *size));
    for (ProtoField field; fields.next(field); members++) {
      if (!may_be_packet_field(field)) return false;
    }
    if (is_cut) return members > 0;
    if (!fields.ok()) return members > 1;  // damaged, but so far a trace
    at += *size;
  }
  return members > 0;
}

// What holds nothing that ran says so.
void note_empty(Trace& trace) {
  const std::size_t rows =
      trace.slices.size() + trace.memory.size() + trace.flows.size() + trace.instants.size() + trace.counters.size();
  if (rows > 0 || !trace.issues.empty()) return;
  add_issue(trace.issues, {"no_events", Severity::info, "the file holds no events",
                           "Check that the profiler ran while the job worked (schedule, warm-up, export)", 1,
                           trace.source.path, std::nullopt, std::nullopt});
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  const Result<formats::FileText> file = formats::read_text(path, options.max_text_bytes);
  if (!file) return fail(file.error());
  PacketReader packets(file->text);
  packets.read();
  if (packets.packets() == 0) {
    return fail({ErrorKind::malformed, "is cut or broken before the end of the first packet of a Perfetto trace", path,
                 0, "Copy or record the file again"});
  }
  std::vector<Trace> traces = packets.finish(path);
  for (Trace& trace : traces) {
    trace.source.compressed = file->compressed;
    trace.source.file_bytes = file->file_bytes;
    note_empty(trace);
  }
  note_gzip_damage(traces.front(), file->damage);
  return traces;
}

Result<std::vector<std::string>> event_text(const Trace& trace, std::span<const std::uint64_t> offsets) {
  const Result<formats::FileText> file = formats::read_text(trace.source.path, UINT64_MAX);
  if (!file) return fail(file.error());
  std::unordered_map<std::uint64_t, std::string> found;  // slices lie by lane in the file, not by their numbers
  for (const std::uint64_t offset : offsets) found.try_emplace(offset);
  PacketReader packets(file->text);
  packets.read_events([&](std::uint64_t place, const Event& event, const Sequence& sequence) {
    if (const auto wanted = found.find(place); wanted != found.end()) wanted->second = event_json(event, sequence);
  });
  std::vector<std::string> texts;
  for (const std::uint64_t offset : offsets) {
    texts.push_back(found[offset]);
    if (!texts.back().empty()) continue;
    return fail({ErrorKind::changed, "the event is no longer where it was read", trace.source.path, offset,
                 "Open the file again"});
  }
  return texts;
}

}  // namespace

Reader perfetto_reader() {
  return {"perfetto", "Perfetto traces: those of stepscope whole, of others the track events; plain or gzip",
          recognizes, read_file, event_text};
}

}  // namespace stepscope::read
