#include "read/chrome_trace/decoder.h"

#include <limits>

#include "formats/json_text.h"
#include "formats/number_text.h"
#include "read/chrome_trace/decoder_members.h"

namespace stepscope::read::chrome_trace {
namespace {

// An indented array as it would stand on one line.
std::string on_one_line(const char* begin, const char* end) {
  std::string line;
  bool quoted = false;
  for (const char* p = begin; p < end; p++) {
    if (quoted && *p == '\\' && p + 1 < end) {
      line += *p++;
    } else if (*p == '"') {
      quoted = !quoted;
    }
    if (quoted || (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')) line += *p;
  }
  return line;
}

constexpr std::size_t kManyCategories = 0x8000;

}  // namespace

void Decoder::start(Batch& batch, const char* text) {
  batch_ = &batch;
  text_ = text;
  metadata_.truncate(0);  // told once per batch: a batch may never be committed
  if (categories_.size() < kManyCategories) return;
  categories_.truncate(0);  // ids are given anew: none of a batch's own must be missing for what others used up
  kinds_.clear();
  last_category_text_ = "\n";
}

void Decoder::note(Defect defect) {
  Tally& tally = batch_->defects[static_cast<std::size_t>(defect)];
  if (tally.count++ == 0) tally.first_offset = batch_->text_offset + static_cast<std::uint64_t>(event_.begin - text_);
}

LocalId Decoder::intern_indented(const char* begin, const char* end) { return intern(on_one_line(begin, end)); }

std::uint16_t Decoder::find_category(std::string_view raw) {
  const std::size_t known = categories_.size();
  const auto id = static_cast<std::uint32_t>(categories_.intern(raw));
  if (id >= 0xfffe) return 0xffff;  // a file with 65,534 categories uses them as names
  if (id == known) {
    kinds_.push_back(slice_kind(raw));
    batch_->new_categories.emplace_back(static_cast<std::uint16_t>(id), intern(raw));
  }
  last_category_text_ = categories_[static_cast<StringId>(id)];
  return last_category_ = static_cast<std::uint16_t>(id);
}

std::uint32_t Decoder::find_track(const RawTrack& ids) {
  const auto mask = static_cast<std::uint32_t>(track_slots_.size() - 1);
  const std::uint64_t mixed = (static_cast<std::uint64_t>(ids.process.number) * 0x9E3779B97F4A7C15ull) ^
                              (static_cast<std::uint64_t>(ids.thread.number) * 0xC2B2AE3D27D4EB4Full) ^
                              (std::uint64_t{ids.process.text} << 40) ^ (std::uint64_t{ids.thread.text} << 20) ^
                              ids.lane;
  auto slot = static_cast<std::uint32_t>((mixed * 0x9E3779B97F4A7C15ull) >> 32) & mask;
  for (; track_slots_[slot] != kNoId; slot = (slot + 1) & mask) {
    if (tracks_[track_slots_[slot]] == ids) return last_track_ = track_slots_[slot];
  }
  const auto id = static_cast<std::uint32_t>(tracks_.size());
  tracks_.push_back(ids);
  track_slots_[slot] = id;
  batch_->new_tracks.emplace_back(id, ids);
  if (tracks_.size() * 2 > track_slots_.size()) {
    std::vector<RawTrack> all = std::move(tracks_);
    std::vector<std::pair<std::uint32_t, RawTrack>> known = batch_->new_tracks;
    track_slots_.assign(track_slots_.size() * 4, kNoId);
    tracks_.clear();
    last_track_ = kNoId;
    for (const RawTrack& each : all) find_track(each);  // ids are given in the same order
    batch_->new_tracks = std::move(known);
  }
  return last_track_ = id;
}

// True with kAbsent for a value of another type; false only for text that is no JSON number.
bool Decoder::integer_of_another_kind(const char* begin, const char* end, std::int64_t& out) {
  out = kAbsent;
  const bool quoted = *begin == '"';
  if (quoted && formats::parse_int(begin + 1, end - 1, out)) return true;
  if (quoted && begin[1] == '0' && (begin[2] | 32) == 'x') {  // ROCm writes handles as "0x…"
    char* stop = nullptr;
    const std::string hex(begin + 1, end - 1);
    out = static_cast<std::int64_t>(std::strtoull(hex.c_str(), &stop, 16));
    if (*stop == '\0') return true;
  }
  double real = 0;
  const bool number = formats::parse_real(begin + quoted, end - quoted, real);
  if (number && real >= -9.2e18 && real <= 9.2e18) {
    out = static_cast<std::int64_t>(real);
    return true;
  }
  out = kAbsent;
  if (number) {
    note(Defect::wide_number);
    return true;
  }
  if (*begin != 'n') note(Defect::bad_number);
  return !starts_number(*begin);
}

// Reals, texts and triples: a few per kernel or shaped op.
bool Decoder::rare_argument(Field field, const char* begin, const char* end) {
  Event& e = event_;
  switch (field.type) {
    case FieldType::real: {
      double value = 0;
      if (e.reals >> field.index & 1) note(Defect::duplicate_key);
      const bool quoted = *begin == '"';
      if (!formats::parse_real(begin + quoted, end - quoted, value)) {
        if (*begin != 'n') note(Defect::bad_number);
        return !starts_number(*begin);
      }
      e.reals |= 1u << field.index;
      e.real[field.index] = value;
      return true;
    }
    case FieldType::text: {
      if (e.texts >> field.index & 1) note(Defect::duplicate_key);
      e.text[field.index] = intern_value(begin, end);
      e.texts |= 1u << field.index;
      return true;
    }
    case FieldType::triple: {
      if (e.triples >> field.index & 1) note(Defect::duplicate_key);
      std::uint32_t* out = e.triple[field.index];
      out[0] = out[1] = out[2] = 0;
      const char* p = begin + 1;  // behind '[' or, as ROCm writes it, '"'
      for (int k = 0; k < 3 && p < end; k++) {
        while (p < end && !formats::is_digit(*p)) p++;
        std::uint64_t value = 0;
        if (p < end) p = formats::parse_digits(p, value);
        out[k] = value < 0xffffffff ? static_cast<std::uint32_t>(value) : 0;
      }
      e.triples |= 1u << field.index;
      return true;
    }
    default: return true;
  }
}

void Decoder::end_event(const char* end) {
  const Event& e = event_;
  if (e.phase == 'M') return put_metadata(end);
  if (!e.has_time) return note(Defect::missing_time);
  switch (e.phase) {
    case 'X': return put_slice();
    case 'B': return put_half(true, event_track());
    case 'E': return put_half(false, event_track());
    case 'b':
    case 'S': return put_half(true, async_track());
    case 'e':
    case 'F': return put_half(false, async_track());
    case 's':
    case 't':
    case 'f': return put_flow();
    case 'C': return put_counters();
    case 'i':
    case 'I':
    case 'R':
      if (e.numbers >> kBytes & 1 && strings_[static_cast<StringId>(e.name)] == "[memory]") return put_memory();
      return put_instant(event_track());
    case 'n':
    case 'T':
    case 'p': return put_instant(async_track());
    case 0:
    case '?': return note(Defect::missing_kind);
    default: return note(Defect::unknown_kind);
  }
}

void Decoder::put_slice() {
  Event& e = event_;
  if (!e.has_dur) return note(Defect::missing_duration);
  if (e.dur_ns < 0) {
    note(Defect::negative_duration);
    e.dur_ns = 0;
  }
  if (!e.has_name) note(Defect::missing_name);
  if (e.category == 0xffff) note(Defect::missing_category);
  Batch& b = *batch_;
  const auto row = static_cast<std::uint32_t>(b.start_ns.size());
  b.start_ns.push_back(e.time_ns);
  b.dur_ns.push_back(e.dur_ns);
  b.name.push_back(e.name);
  b.track.push_back(event_track());
  b.category.push_back(e.category);
  b.place.push_back(place());
  switch (kind()) {
    case SliceKind::runtime: put_launch(row); break;
    case SliceKind::kernel:
    case SliceKind::memcpy:
    case SliceKind::memset:
    case SliceKind::sync: put_device(row); break;
    case SliceKind::profiler_range: put_counters(); break;  // its arguments are what was measured
    case SliceKind::gpu_user_annotation:
    case SliceKind::trace_window: break;
    default: put_op(row);
  }
  constexpr std::uint32_t comm = 1u << kCollectiveKind | 1u << kGroupName;
  if (e.texts & comm) put_collective(row);
}

void Decoder::put_op(std::uint32_t row) {
  constexpr std::uint32_t ids = 1u << kExternalId | 1u << kRecordFunctionId | 1u << kSequence | 1u << kStream;
  constexpr std::uint32_t texts = 1u << kDims | 1u << kTypes | 1u << kConcrete | 1u << kCallStack;
  if (!(event_.numbers & ids) && !(event_.texts & texts)) return;
  auto& t = batch_->ops;
  t.row.push_back(row);
  t.external_id.push_back(number(kExternalId));
  t.record_function_id.push_back(number(kRecordFunctionId));
  t.sequence.push_back(number(kSequence));
  t.fwd_thread.push_back(number(kFwdThread));
  t.dims.push_back(text(kDims));
  t.types.push_back(text(kTypes));
  t.concrete.push_back(text(kConcrete));
  t.call_stack.push_back(text(kCallStack));
  t.stream.push_back(number(kStream));
}

void Decoder::put_launch(std::uint32_t row) {
  auto& t = batch_->launches;
  t.row.push_back(row);
  t.correlation.push_back(number(kCorrelation));
  t.external_id.push_back(number(kExternalId));
}

float Decoder::real(Real which) const {
  return event_.reals >> which & 1 ? static_cast<float>(event_.real[which]) : std::numeric_limits<float>::quiet_NaN();
}

void Decoder::put_device(std::uint32_t row) {
  const auto count = [&](Number which) {
    const std::int64_t value = number(which);
    return value < 0 || value >= DeviceRows::kNoCount ? DeviceRows::kNoCount : static_cast<std::uint32_t>(value);
  };
  auto& t = batch_->device;
  const std::int64_t device = number(kDevice);
  t.row.push_back(row);
  t.correlation.push_back(number(kCorrelation));
  t.external_id.push_back(number(kExternalId));
  t.device.push_back(device >= 0 && device < INT32_MAX ? static_cast<std::int32_t>(device) : -1);
  t.stream.push_back(number(kStream));
  for (int k = 0; k < 3; k++) {
    t.grid[k].push_back(event_.triples >> kGrid & 1 ? event_.triple[kGrid][k] : 0);
    t.block[k].push_back(event_.triples >> kBlock & 1 ? event_.triple[kBlock][k] : 0);
  }
  t.registers.push_back(count(kRegisters));
  t.shared_bytes.push_back(count(kSharedBytes));
  t.blocks_per_sm.push_back(real(kBlocksPerSm));
  t.warps_per_sm.push_back(real(kWarpsPerSm));
  t.occupancy_percent.push_back(real(kOccupancy));
  t.bytes.push_back(number(kBytes));
  t.wait_stream.push_back(number(kWaitStream));
  t.wait_correlation.push_back(number(kWaitCorrelation));
  if (event_.reals >> kCopySpeed & 1) put_copy_speed(row);
}

void Decoder::put_copy_speed(std::uint32_t row) {
  batch_->copy_speeds.row.push_back(row);
  batch_->copy_speeds.gb_per_s.push_back(event_.real[kCopySpeed]);
}

void Decoder::put_collective(std::uint32_t row) {
  auto& t = batch_->collectives;
  t.row.push_back(row);
  t.kind.push_back(text(kCollectiveKind));
  t.dtype.push_back(text(kDtype));
  t.in_elements.push_back(number(kInElements));
  t.out_elements.push_back(number(kOutElements));
  t.group_size.push_back(number(kGroupSize));
  t.group_name.push_back(text(kGroupName));
  t.group_ranks.push_back(text(kGroupRanks));
  t.sequence.push_back(number(kCollectiveSequence));
  // The other end. Where both ends are recorded, that of a receive is its source.
  const std::int64_t source = number(kSourceRank), target = number(kTargetRank);
  const LocalId kind = text(kCollectiveKind);
  const bool receives = kind != kNoId && strings_[static_cast<StringId>(kind)].find("recv") != std::string_view::npos;
  t.peer.push_back((receives && source != kAbsent) || target == kAbsent ? source : target);
  t.in_split.push_back(text(kInSplit));
  t.out_split.push_back(text(kOutSplit));
}

// Async events live on a lane of their own per process, category and id.
std::uint32_t Decoder::async_track() {
  std::string lane;
  if (event_.category != 0xffff) lane = categories_[static_cast<StringId>(event_.category)];
  lane += ' ';
  lane += event_.id_text == kNoId ? std::to_string(event_.id)
                                  : std::string(strings_[static_cast<StringId>(event_.id_text)]);
  return track({event_.process, RawId{}, intern(lane)});
}

void Decoder::put_half(bool begin, std::uint32_t track) {
  const std::uint64_t at = batch_->text_offset + place();
  batch_->halves.push_back({event_.time_ns, event_.name, track, event_.category, at, begin});
}

void Decoder::put_instant(std::uint32_t track) {
  auto& t = batch_->instants;
  t.time_ns.push_back(event_.time_ns);
  t.name.push_back(event_.name);
  t.track.push_back(track);
  t.category.push_back(event_.category);
  t.place.push_back(place());
}

void Decoder::put_memory() {
  const auto small = [&](Number which) {
    const std::int64_t value = number(which);
    return value >= 0 && value < INT16_MAX ? static_cast<std::int16_t>(value) : std::int16_t{-1};
  };
  auto& t = batch_->memory;
  t.time_ns.push_back(event_.time_ns);
  t.track.push_back(event_track());
  t.bytes.push_back(number(kBytes));
  t.address.push_back(number(kAddress));
  t.total_allocated.push_back(number(kTotalAllocated));
  t.total_reserved.push_back(number(kTotalReserved));
  t.device_type.push_back(small(kDeviceType));
  t.device_index.push_back(small(kDeviceIndex));
}

void Decoder::put_flow() {
  auto& t = batch_->flows;
  t.time_ns.push_back(event_.time_ns);
  t.id.push_back(event_.id);
  t.id_text.push_back(event_.id_text);
  t.track.push_back(event_track());
  t.category.push_back(event_.category);
  t.phase.push_back(event_.phase);
}

void Decoder::put_counters() {
  if (event_.args_begin == nullptr) {
    if (event_.phase == 'C') note(Defect::bad_number);
    return;
  }
  auto& t = batch_->counters;
  const std::uint32_t on = event_track();
  const std::string_view arguments(event_.args_begin, static_cast<std::size_t>(event_.args_end - event_.args_begin));
  for (const auto& [key, raw_key, value] : formats::members(arguments)) {
    double number = 0;
    const std::size_t quoted = value.starts_with('"');
    const char* begin = value.data() + quoted;  // padded, as all of the chunk is
    if (!formats::parse_real(begin, value.data() + value.size() - quoted, number)) {
      note(Defect::bad_number);
      continue;
    }
    t.time_ns.push_back(event_.time_ns);
    t.name.push_back(event_.name);
    t.key.push_back(intern(raw_key));
    t.track.push_back(on);
    t.value.push_back(number);
  }
}

// Some accelerators repeat the same few metadata events hundreds of thousands of times: each text is kept once.
void Decoder::put_metadata(const char* end) {
  const std::size_t known = metadata_.size();
  const auto id =
      static_cast<std::size_t>(metadata_.intern({event_.begin, static_cast<std::size_t>(end - event_.begin)}));
  if (id == known) batch_->new_metadata.push_back(metadata_[static_cast<StringId>(id)]);
}

}  // namespace stepscope::read::chrome_trace
