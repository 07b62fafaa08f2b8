#include "read/perfetto/packets.h"

#include <algorithm>
#include <string>

namespace stepscope::read::perfetto {
namespace {

struct DataKind {
  std::uint32_t field;
  std::string_view name;  // empty: the recording's own bookkeeping, which says nothing of what ran
};

constexpr DataKind kKinds[] = {
    {1, "ftrace"},
    {2, "process lists"},
    {7, "system counters"},
    {9, "process counters"},
    {37, "profiles"},
    {39, "Android log"},
    {50, "compressed"},
    {52, "GPU counters"},
    {53, "GPU stages"},
    {66, "samples"},
    {133, "compressed"},
    {33, ""},
    {34, ""},
    {35, ""},
    {36, ""},
    {45, ""},
    {46, ""},
    {47, ""},
    {51, ""},
    {67, ""},
    {69, ""},
    {72, ""},
    {78, ""},
    {89, ""},
    {126, ""},
};

const DataKind* kind_of(std::uint32_t field) {
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.field == field; });
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

bool Packet::read(std::string_view message) {
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    switch (field.number) {
      case wire::packet::timestamp:
        time = field.value;
        has_time = true;
        break;
      case wire::packet::clock: clock = field.value; break;
      case wire::packet::sequence: sequence = field.value; break;
      case wire::packet::flags: cleared |= (field.value & wire::packet::cleared) != 0; break;
      case wire::packet::state_cleared: cleared |= field.value != 0; break;
      case wire::packet::interned: interned = field.bytes; break;
      case wire::packet::defaults: defaults = field.bytes; break;
      case wire::packet::clock_snapshot: snapshot = field.bytes; break;
      case wire::packet::track: track = field.bytes; break;
      case wire::packet::event:
        event = field.bytes;
        has_event = true;
        break;
      default:
        if (field.type == WireType::bytes) other = field.number;
    }
  }
  return fields.ok();
}

void PacketReader::each_packet(const TakePacket& take) {
  ProtoFields fields(text_);
  std::size_t place = 0;
  for (ProtoField field; fields.next(field); place = fields.position()) {
    Packet packet;
    if (field.number != wire::trace::packet || field.type != WireType::bytes || !packet.read(field.bytes)) {
      defects_.note(Defect::broken_packet, place);
      continue;
    }
    packets_++;
    take(packet, place, learn(packet, place));
  }
  if (!fields.ok()) defects_.note(Defect::cut, place);
}

Sequence& PacketReader::learn(const Packet& packet, std::uint64_t place) {
  Sequence& sequence = sequences_[packet.sequence];
  sequence.id = packet.sequence;
  if (packet.cleared) sequence.clear();
  bool ok = packet.defaults.empty() || sequence.take_defaults(packet.defaults);
  if (!packet.interned.empty()) ok &= sequence.learn(packet.interned);
  if (!packet.snapshot.empty()) ok &= clocks_.take_snapshot(packet.snapshot, packet.sequence);
  if (!packet.track.empty() && !own_.contains(packet.sequence)) ok &= descriptors_.take(packet.track);
  if (!ok) defects_.note(Defect::broken_packet, place);
  return sequence;
}

void PacketReader::read() {
  each_packet([&](const Packet& packet, std::uint64_t place, Sequence& sequence) {
    if (packet.has_event) return take_event(packet, place, sequence);
    const DataKind* kind = kind_of(packet.other);
    if (packet.other == 0 || (kind != nullptr && kind->name.empty())) return;
    Unread& unread = unread_[packet.other];
    if (unread.count++ == 0) unread.place = place;
  });
}

void PacketReader::read_events(const TakeEvent& take) {
  each_packet([&](const Packet& packet, std::uint64_t place, Sequence& sequence) {
    if (packet.has_event && event_.read(packet.event, sequence)) take(place, event_, sequence);
  });
}

void PacketReader::take_event(const Packet& packet, std::uint64_t place, Sequence& sequence) {
  if (!event_.read(packet.event, sequence)) return defects_.note(Defect::broken_packet, place);
  if (!packet.has_time) return defects_.note(Defect::missing_time, place);
  if (event_.type == wire::event::instant && take_about(sequence, place)) return;
  const std::uint64_t clock = packet.clock != 0 ? packet.clock : sequence.default_clock;
  const auto time_ns = clocks_.time_ns(clock, sequence.id, packet.time);
  if (!time_ns) defects_.note(Defect::unknown_clock, place);
  rank_of(sequence.id).take(event_, sequence, time_ns.value_or(packet.time), place, descriptors_);
}

// Is it the event by which a rank of ours begins?
bool PacketReader::take_about(const Sequence& sequence, std::uint64_t place) {
  if (event_.name != "stepscope" || own_.contains(sequence.id)) return false;
  bool ok = true;
  std::uint64_t unknown = 0;
  for (const std::string_view annotation : event_.annotations) {
    const Value about = read_value(annotation, sequence, ok, unknown);
    if (about.name != "stepscope" || about.kind != Value::Kind::dict) continue;
    own_[sequence.id] = ranks_.emplace_back(std::make_unique<RankReader>(defects_)).get();
    own_[sequence.id]->take_about(about, sequence, place);
    return true;
  }
  return false;
}

RankReader& PacketReader::rank_of(std::uint64_t sequence) {
  const auto own = own_.find(sequence);
  if (own != own_.end()) return *own->second;
  if (foreign_ == nullptr) foreign_ = ranks_.emplace_back(std::make_unique<RankReader>(defects_)).get();
  return *foreign_;
}

void PacketReader::report_foreign(Trace& trace, const std::string& path) const {
  add_issue(trace.issues,
            {"foreign_perfetto", Severity::info,
             "the trace was not written by stepscope: slices, instants, counters, arrows and names of its track events "
             "were read; which slices are device work is not recorded in it",
             "Open the profiler's own file (torch.profiler's JSON) for answers about kernels", 1, path, std::nullopt,
             std::nullopt});
  std::uint64_t count = 0, place = UINT64_MAX;
  std::string kinds;
  for (const auto& [field, unread] : unread_) {
    const DataKind* kind = kind_of(field);
    const std::string name = kind == nullptr ? "field " + std::to_string(field) : std::string(kind->name);
    if (count < 1000 * unread_.size()) kinds += (kinds.empty() ? "" : ", ") + name + " " + std::to_string(unread.count);
    count += unread.count;
    place = std::min(place, unread.place);
  }
  if (count == 0) return;
  add_issue(trace.issues,
            {"not_track_events", Severity::lost, "packets that are no track events were not read: " + kinds,
             "Use ui.perfetto.dev for what they hold", count, path, place, std::nullopt});
}

void PacketReader::report_ranks(Trace& trace, std::int64_t told, const std::string& path) const {
  const auto found = static_cast<std::int64_t>(own_.size());
  if (told <= found) return;
  add_issue(trace.issues,
            {"ranks_cut", Severity::lost,
             "the file was written with " + std::to_string(told) + " ranks, of which it holds " + std::to_string(found),
             "Write it again", static_cast<std::uint64_t>(told - found), path, std::nullopt, std::nullopt});
}

std::vector<Trace> PacketReader::finish(const std::string& path) {
  std::vector<Trace> traces;
  std::int64_t told = 0;
  if (ranks_.empty()) rank_of(0);
  for (const auto& rank : ranks_) {
    told = std::max(told, rank->ranks());
    const bool is_foreign = !rank->is_own();
    Trace& trace = traces.emplace_back(rank->finish(descriptors_));
    trace.source.path = path;
    trace.source.format = "perfetto";
    trace.source.text_bytes = text_.size();
    if (is_foreign) trace.source.writer = "perfetto";
    if (is_foreign) report_foreign(trace, path);
  }
  report_ranks(traces.front(), told, path);
  defects_.report(traces.front().issues, path);
  return traces;
}

}  // namespace stepscope::read::perfetto
