#include "run/ring.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "run/record_ring.h"

namespace stepscope::run {
namespace {

constexpr std::size_t kNowAt = 72, kRecordBytes = 32;
constexpr RingFormat kFormat{kRingMagic, 1, kRecordBytes, "record of steps"};

struct Record {
  std::int64_t start_ns, dur_ns, step;
  std::uint16_t kind, phase;
  std::uint32_t reserved;
};
static_assert(sizeof(Record) == kRecordBytes);

// Damaged times may be any number.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

void take_about(std::string_view json, Ring& ring) {
  simdjson::dom::parser parser;
  simdjson::dom::element about;
  if (parser.parse(json.data(), json.size()).get(about) != simdjson::SUCCESS) return;
  const auto number = [&](const char* key, std::int64_t& out) {
    std::int64_t value = 0;
    if (about[key].get(value) == simdjson::SUCCESS) out = value;
  };
  std::string_view text;
  if (about["host"].get(text) == simdjson::SUCCESS) ring.host = std::string(text);
  if (about["rank_source"].get(text) == simdjson::SUCCESS) ring.rank_source = std::string(text);
  number("pid", ring.pid);
  number("rank", ring.rank);
  number("world_size", ring.world_size);
  number("started_unix_ns", ring.started_unix_ns);
}

}  // namespace

std::string_view phase_name(unsigned phase) {
  constexpr std::array<std::string_view, 5> kNames{"", "dataloader", "forward", "backward", "optimizer"};
  return phase < kNames.size() ? kNames[phase] : "other";
}

Result<Ring> read_ring(const std::string& path) {
  const auto read = RecordRing::read(path, kFormat);
  if (!read) return fail(read.error());
  const RecordRing& bytes = *read;
  Ring ring;
  take_about(bytes.about(), ring);
  ring.dropped = bytes.dropped();
  ring.cut = bytes.cut();
  ring.file_bytes = bytes.file_bytes();
  std::int64_t to_unix_ns = 0;  // of the last pair of clocks; the first record is one
  const std::uint64_t first = bytes.first(), written = bytes.written();
  // Marks before the first pair that is left are placed by it, too.
  for (std::uint64_t i = first; i < written && to_unix_ns == 0; i++) {
    const auto one = bytes.record<Record>(i);
    if (static_cast<MarkKind>(one.kind) == MarkKind::clock) to_unix_ns = wrapped_difference(one.step, one.start_ns);
  }
  Mark last_step{.start_ns = 0, .dur_ns = -1};
  for (std::uint64_t i = first; i < written; i++) {
    if (!bytes.has(i)) continue;
    const auto one = bytes.record<Record>(i);
    const auto kind = static_cast<MarkKind>(one.kind);
    if (kind == MarkKind::clock) {
      to_unix_ns = wrapped_difference(one.step, one.start_ns);
      continue;
    }
    std::int64_t start_ns = 0, end_ns = 0;
    const bool usable = one.dur_ns >= 0 && !__builtin_add_overflow(one.start_ns, to_unix_ns, &start_ns) &&
                        !__builtin_add_overflow(start_ns, one.dur_ns, &end_ns);
    if (!usable || kind < MarkKind::step || kind > MarkKind::part) continue;
    Mark mark{start_ns, one.dur_ns, one.step, kind, one.phase, bytes.place(i)};
    if (kind == MarkKind::step) {
      // Two pairs of clocks differ by some ns: a step must not begin before the one before it has ended.
      const std::int64_t last_end = last_step.start_ns + last_step.dur_ns;
      if (last_step.dur_ns >= 0 && start_ns > last_step.start_ns && start_ns < last_end && end_ns > last_end) {
        mark.start_ns = last_end;
        mark.dur_ns = end_ns - last_end;
      }
      last_step = mark;
    }
    ring.marks.push_back(mark);
  }
  ring.phase_since_ns = wrapped_sum(bytes.at<std::int64_t>(kNowAt), to_unix_ns);
  ring.step_now = bytes.at<std::int64_t>(kNowAt + 8);
  ring.phase_now = bytes.at<std::uint32_t>(kNowAt + 16);
  return ring;
}

std::vector<std::string> ring_files(const std::string& run_folder) { return telemetry_files(run_folder, ".ring"); }

}  // namespace stepscope::run
