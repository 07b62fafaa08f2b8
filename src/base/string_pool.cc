#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

namespace stepscope {
namespace {

constexpr std::uint32_t kFree = 0xffffffff;
constexpr std::size_t kBlockBytes = 256 << 10;

std::uint64_t load8(const char* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const __uint128_t product = static_cast<__uint128_t>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

void Arena::refill(std::size_t bytes) {
  const std::size_t size = std::max(bytes, kBlockBytes);
  blocks_.push_back(std::unique_ptr<char[]>(new char[size]));
  next_ = blocks_.back().get();
  room_ = size;
}

// Multiply-and-fold over 16-byte pairs; the last, possibly overlapping pair covers the rest of the text.
std::uint32_t StringPool::hash(const char* text, std::size_t size) {
  constexpr std::uint64_t k1 = 0xa0761d6478bd642full, k2 = 0xe7037ed1a0b428dbull;
  std::uint64_t h = size * 0x9E3779B97F4A7C15ull;
  if (size >= 16) {
    for (std::size_t i = 0; i + 16 <= size; i += 16) h = mix(load8(text + i) ^ h ^ k1, load8(text + i + 8) ^ k2);
    return static_cast<std::uint32_t>(mix(load8(text + size - 16) ^ h ^ k1, load8(text + size - 8) ^ k2));
  }
  if (size >= 8) return static_cast<std::uint32_t>(mix(load8(text) ^ h ^ k1, load8(text + size - 8) ^ k2));
  std::uint64_t v = 0;
  std::memcpy(&v, text, size);
  return static_cast<std::uint32_t>(mix(v ^ h ^ k1, k2));
}

StringPool::StringPool() { rebuild(1 << 10); }

void StringPool::rebuild(std::size_t slots) {
  slots_.assign(slots, kFree);
  mask_ = static_cast<std::uint32_t>(slots - 1);
  for (std::uint32_t i = 0; i < entries_.size(); i++) {
    std::uint32_t slot = entries_[i].hash & mask_;
    while (slots_[slot] != kFree) slot = (slot + 1) & mask_;
    slots_[slot] = i;
  }
}

StringId StringPool::intern(std::string_view text, std::uint32_t hash) {
  std::uint32_t slot = hash & mask_;
  for (; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && entry.text == text) return static_cast<StringId>(slots_[slot]);
  }
  char* copy = arena_.get(text.size());
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  const auto id = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({{copy, text.size()}, hash});
  slots_[slot] = id;
  if (entries_.size() * 2 > mask_) rebuild(slots_.size() * 2);
  return static_cast<StringId>(id);
}

StringId StringPool::find(std::string_view text) const {
  const std::uint32_t h = hash(text.data(), text.size());
  for (std::uint32_t slot = h & mask_; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == h && entry.text == text) return static_cast<StringId>(slots_[slot]);
  }
  return StringId::none;
}

void StringPool::truncate(std::size_t count) {
  if (count >= entries_.size()) return;
  entries_.resize(count);
  rebuild(slots_.size());
}

}  // namespace stepscope
