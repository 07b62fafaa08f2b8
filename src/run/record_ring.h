// The file that marks and samples are kept in: a head, JSON that says who writes, and a ring of records of one size.
// The writer stores a record first and then the number of records ever written. What it may have overwritten between
// our two looks at that number is dropped; the rest is whole.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::run {

struct RingHead {
  char magic[8];
  std::uint32_t version, head_bytes, record_bytes, about_bytes;
  std::uint64_t records;  // that the ring holds
};
static_assert(sizeof(RingHead) == 32);

inline constexpr std::size_t kRingHeadBytes = 4096, kRingWrittenAt = 64, kRingAboutAt = 256;

struct RingFormat {
  std::string_view magic;
  std::uint32_t version, record_bytes;
  std::string_view what;        // "record of steps"
  std::uint64_t in_flight = 0;  // so many records may be stored already when their number is not
};

class RecordRing {
 public:
  // Fails on what is no such file of this version.
  static Result<RecordRing> read(const std::string& path, const RingFormat& format);

  std::string_view about() const { return std::string_view(bytes_).substr(kRingAboutAt, head_.about_bytes); }
  std::uint64_t first() const { return first_; }  // number of the oldest record that is there and whole
  std::uint64_t written() const { return written_; }
  // Of a file that was cut short: whether this record is still there; and how many are not.
  bool has(std::uint64_t index) const { return place(index) + head_.record_bytes <= bytes_.size(); }
  std::uint64_t cut() const;
  std::uint64_t dropped() const { return first_ < written_ ? first_ : written_; }
  std::uint64_t file_bytes() const { return bytes_.size(); }
  std::uint64_t place(std::uint64_t index) const {
    return head_.head_bytes + index % head_.records * head_.record_bytes;
  }
  template <class T>
  T at(std::uint64_t place) const {  // zeros behind the end
    T value{};
    if (place + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  template <class Record>
  Record record(std::uint64_t index) const {
    return at<Record>(place(index));
  }

 private:
  RingHead head_{};
  std::string bytes_;
  std::uint64_t first_ = 0, written_ = 0;
};

// Paths of the files with this extension in <run folder>/telemetry, sorted.
std::vector<std::string> telemetry_files(const std::string& run_folder, std::string_view extension);

}  // namespace stepscope::run
