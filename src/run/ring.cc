// The writer stores a record first and then the number of records ever written. What it may have overwritten between
// our two looks at that number is dropped; the rest is whole.
#include "run/ring.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/whole_file.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uintmax_t kLargest = 256 << 20;
constexpr std::size_t kWrittenAt = 64, kNowAt = 72, kAboutAt = 256;
constexpr std::size_t kRecordBytes = 32;

struct Head {
  char magic[8];
  std::uint32_t version, header_bytes, record_bytes, about_bytes;
  std::uint64_t records;
};
static_assert(sizeof(Head) == 32);

struct Record {
  std::int64_t start_ns, dur_ns, step;
  std::uint16_t kind, phase;
  std::uint32_t reserved;
};
static_assert(sizeof(Record) == kRecordBytes);

Error no_ring(const std::string& path, std::string why) {
  return {ErrorKind::malformed, "is no record of steps: " + std::move(why), path, std::nullopt, ""};
}

template <class T>
T value_at(const std::string& bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Damaged times may be any number.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::uint64_t written_now(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t value = 0;
  file.seekg(kWrittenAt);
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
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
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (code) return fail({ErrorKind::unreadable, "cannot be read: " + code.message(), path, std::nullopt, ""});
  if (size > kLargest) return fail(no_ring(path, "it is larger than a ring gets"));
  const std::string bytes = whole_file(path);
  const Head head = value_at<Head>(bytes, 0);
  if (bytes.size() < kAboutAt || std::string_view(head.magic, sizeof head.magic) != kRingMagic) {
    return fail(no_ring(path, "it does not start as one"));
  }
  if (head.version != kVersion || head.record_bytes != kRecordBytes || head.records == 0 ||
      head.header_bytes > bytes.size() || head.records > (bytes.size() - head.header_bytes) / kRecordBytes ||
      head.about_bytes > head.header_bytes - std::min<std::size_t>(head.header_bytes, kAboutAt)) {
    return fail(no_ring(path, "its head is damaged, or a newer stepscope wrote it"));
  }
  Ring ring;
  take_about(std::string_view(bytes).substr(kAboutAt, head.about_bytes), ring);
  const auto written = value_at<std::uint64_t>(bytes, kWrittenAt);
  const std::uint64_t overwritten = std::max(written_now(path), written);
  const std::uint64_t first = overwritten > head.records ? overwritten - head.records : 0;
  ring.dropped = std::min(first, written);
  ring.file_bytes = bytes.size();
  std::int64_t to_unix_ns = 0;  // of the last pair of clocks; the first record is one
  const auto place = [&](std::uint64_t index) { return head.header_bytes + index % head.records * kRecordBytes; };
  const auto record = [&](std::uint64_t index) { return value_at<Record>(bytes, place(index)); };
  // Marks before the first pair that is left are placed by it, too.
  for (std::uint64_t i = first; i < written && to_unix_ns == 0; i++) {
    const Record one = record(i);
    if (static_cast<MarkKind>(one.kind) == MarkKind::clock) to_unix_ns = wrapped_difference(one.step, one.start_ns);
  }
  for (std::uint64_t i = first; i < written; i++) {
    const Record one = record(i);
    const auto kind = static_cast<MarkKind>(one.kind);
    if (kind == MarkKind::clock) {
      to_unix_ns = wrapped_difference(one.step, one.start_ns);
      continue;
    }
    std::int64_t start_ns = 0, end_ns = 0;
    const bool usable = one.dur_ns >= 0 && !__builtin_add_overflow(one.start_ns, to_unix_ns, &start_ns) &&
                        !__builtin_add_overflow(start_ns, one.dur_ns, &end_ns);
    if (usable && kind >= MarkKind::step && kind <= MarkKind::part) {
      ring.marks.push_back({start_ns, one.dur_ns, one.step, kind, one.phase, place(i)});
    }
  }
  ring.phase_since_ns = wrapped_sum(value_at<std::int64_t>(bytes, kNowAt), to_unix_ns);
  ring.step_now = value_at<std::int64_t>(bytes, kNowAt + 8);
  ring.phase_now = value_at<std::uint32_t>(bytes, kNowAt + 16);
  return ring;
}

std::vector<std::string> ring_files(const std::string& run_folder) {
  std::vector<std::string> found;
  std::error_code code;
  fs::directory_iterator at(fs::path(run_folder) / "telemetry", code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    if (at->path().extension() == ".ring") found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace stepscope::run
