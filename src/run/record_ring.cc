#include "run/record_ring.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/whole_file.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargest = 256 << 20;

std::uint64_t written_now(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t value = 0;
  file.seekg(kRingWrittenAt);
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

}  // namespace

Result<RecordRing> RecordRing::read(const std::string& path, const RingFormat& format) {
  const auto none = [&](std::string why) {
    return fail(
        {ErrorKind::malformed, "is no " + std::string(format.what) + ": " + std::move(why), path, std::nullopt, ""});
  };
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (code) return fail({ErrorKind::unreadable, "cannot be read: " + code.message(), path, std::nullopt, ""});
  if (size > kLargest) return none("it is larger than a ring gets");
  RecordRing ring;
  ring.bytes_ = whole_file(path);
  const std::string& bytes = ring.bytes_;
  const RingHead head = ring.head_ = ring.at<RingHead>(0);
  if (bytes.size() < kRingAboutAt || std::string_view(head.magic, sizeof head.magic) != format.magic) {
    return none("it does not start as one");
  }
  if (head.version != format.version || head.record_bytes != format.record_bytes || head.records == 0 ||
      head.head_bytes > bytes.size() || head.records > kLargest / head.record_bytes ||
      head.about_bytes > head.head_bytes - std::min<std::size_t>(head.head_bytes, kRingAboutAt)) {
    return none("its head is damaged, or a newer stepscope wrote it");
  }
  ring.written_ = ring.at<std::uint64_t>(kRingWrittenAt);
  const std::uint64_t overwritten = std::max(written_now(path), ring.written_);
  const std::uint64_t first = overwritten > head.records ? overwritten - head.records + format.in_flight : 0;
  ring.first_ = std::min(first, ring.written_);
  return ring;
}

std::uint64_t RecordRing::cut() const {
  const std::uint64_t there = (bytes_.size() - head_.head_bytes) / head_.record_bytes;
  if (there >= head_.records) return 0;
  std::uint64_t missing = 0;
  for (std::uint64_t i = first_; i < written_; i++) missing += has(i) ? 0 : 1;
  return missing;
}

std::vector<std::string> telemetry_files(const std::string& run_folder, std::string_view extension) {
  std::vector<std::string> found;
  std::error_code code;
  fs::directory_iterator at(fs::path(run_folder) / "telemetry", code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    if (at->path().extension() == extension) found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace stepscope::run
