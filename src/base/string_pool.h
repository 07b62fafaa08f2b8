// StringPool: every distinct string once; the rest of the program holds 32-bit ids.
//
// Expected workload: 10^3 to 10^6 distinct strings interned from 10^8 occurrences, later read by id. Bytes live in an
// arena that never moves, so a string_view stays valid as long as the pool. Ids are given in order of first use.
// Not thread-safe while interning; safe to read from many threads afterwards.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace stepscope {

enum class StringId : std::uint32_t { none = 0xffffffff };

// Bump memory: pieces are never moved and are freed together.
class Arena {
 public:
  char* get(std::size_t bytes) {
    if (bytes > room_) refill(bytes);
    char* piece = next_;
    next_ += bytes;
    room_ -= bytes;
    return piece;
  }

 private:
  void refill(std::size_t bytes);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t room_ = 0;
};

class StringPool {
 public:
  StringPool();

  StringId intern(std::string_view text) {
    const std::uint32_t h = hash(text.data(), text.size());
    std::uint32_t slot = h & mask_;
    for (; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
      const Entry& entry = entries_[slots_[slot]];
      if (entry.hash == h && entry.size == text.size() && equal(entry.data, text.data(), text.size())) {
        return static_cast<StringId>(slots_[slot]);
      }
    }
    return add(text, h, slot);
  }
  // The id of `text` if it was interned before, else StringId::none.
  StringId find(std::string_view text) const;
  // "" for StringId::none.
  std::string_view operator[](StringId id) const {
    return id == StringId::none ? std::string_view() : entries_[static_cast<std::uint32_t>(id)].text();
  }
  std::size_t size() const { return entries_.size(); }
  // Forgets all strings but the first `count`; their ids are given anew. Bytes stay in the arena.
  void truncate(std::size_t count);

  // Multiply-and-fold over 16-byte pairs; the last, possibly overlapping pair covers the rest of the text.
  static std::uint32_t hash(const char* text, std::size_t size) {
    constexpr std::uint64_t k1 = 0xa0761d6478bd642full, k2 = 0xe7037ed1a0b428dbull;
    std::uint64_t h = size * 0x9E3779B97F4A7C15ull;
    if (size >= 16) {
      for (std::size_t i = 0; i + 16 <= size; i += 16) h = mix(load8(text + i) ^ h ^ k1, load8(text + i + 8) ^ k2);
      return static_cast<std::uint32_t>(mix(load8(text + size - 16) ^ h ^ k1, load8(text + size - 8) ^ k2));
    }
    if (size >= 8) return static_cast<std::uint32_t>(mix(load8(text) ^ h ^ k1, load8(text + size - 8) ^ k2));
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < size; i++) v |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return static_cast<std::uint32_t>(mix(v ^ h ^ k1, k2));
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  static std::uint64_t load8(const char* p) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    return v;
  }
  // Most texts are short: a few loads beat a call of memcmp. The last, possibly overlapping word covers the rest.
  static bool equal(const char* a, const char* b, std::size_t size) {
    if (size < 8) {
      std::size_t i = 0;
      while (i < size && a[i] == b[i]) i++;
      return i == size;
    }
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
      if (load8(a + i) != load8(b + i)) return false;
    }
    return load8(a + size - 8) == load8(b + size - 8);
  }
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    const __uint128_t product = static_cast<__uint128_t>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  StringId add(std::string_view text, std::uint32_t hash, std::uint32_t slot);

  struct Entry {
    const char* data;
    std::uint32_t size;  // a single text of 4 GiB does not exist here
    std::uint32_t hash;
    std::string_view text() const { return {data, size}; }
  };
  void rebuild(std::size_t slots);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // open addressing, power of two; kFree or an index into entries_
  std::uint32_t mask_;
  Arena arena_;
};

}  // namespace stepscope
