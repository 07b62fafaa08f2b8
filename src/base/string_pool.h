// StringPool: every distinct string once; the rest of the program holds 32-bit ids.
//
// Expected workload: 10^3 to 10^6 distinct strings interned from 10^8 occurrences, later read by id. Bytes live in an
// arena that never moves, so a string_view stays valid as long as the pool. Ids are given in order of first use.
// Not thread-safe while interning; safe to read from many threads afterwards.
#pragma once

#include <cstdint>
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

  StringId intern(std::string_view text) { return intern(text, hash(text.data(), text.size())); }
  StringId intern(std::string_view text, std::uint32_t hash);
  // The id of `text` if it was interned before, else StringId::none.
  StringId find(std::string_view text) const;
  // "" for StringId::none.
  std::string_view operator[](StringId id) const {
    return id == StringId::none ? std::string_view() : entries_[static_cast<std::uint32_t>(id)].text;
  }
  std::size_t size() const { return entries_.size(); }
  // Forgets all strings but the first `count`; their ids are given anew. Bytes stay in the arena.
  void truncate(std::size_t count);

  static std::uint32_t hash(const char* text, std::size_t size);

 private:
  struct Entry {
    std::string_view text;
    std::uint32_t hash;
  };
  void rebuild(std::size_t slots);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // open addressing, power of two; kFree or an index into entries_
  std::uint32_t mask_;
  Arena arena_;
};

}  // namespace stepscope
