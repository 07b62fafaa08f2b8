// A ring of marks as the hooks write it, made by hand. Not part of the program.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "run/ring.h"

namespace stepscope::run {

class RingText {
 public:
  static constexpr std::uint16_t kClock = 1, kStep = 2, kPhase = 3, kPart = 4;

  // Room for `records`; `about` is the JSON in the head.
  RingText(std::uint64_t records, const std::string& about)
      : records_(records), bytes_(kHeadBytes + records * 32, '\0') {
    put(0, "STEPRING", 8);
    word(8, 1);
    word(12, kHeadBytes);
    word(16, 32);
    word(20, static_cast<std::uint32_t>(about.size()));
    put(24, &records_, 8);
    put(256, about.data(), about.size());
  }
  void add(std::int64_t start, std::int64_t dur, std::int64_t step, std::uint16_t kind, std::uint16_t phase = 0) {
    const std::size_t at = kHeadBytes + written_ % records_ * 32;
    put(at, &start, 8);
    put(at + 8, &dur, 8);
    put(at + 16, &step, 8);
    put(at + 24, &kind, 2);
    put(at + 26, &phase, 2);
    written_++;
    put(64, &written_, 8);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t kHeadBytes = 4096;

  void word(std::size_t at, std::uint32_t value) { put(at, &value, 4); }
  void put(std::size_t at, const void* data, std::size_t size) { std::memcpy(bytes_.data() + at, data, size); }

  std::uint64_t records_, written_ = 0;
  std::string bytes_;
};

}  // namespace stepscope::run
