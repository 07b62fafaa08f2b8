#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

namespace stepscope {
namespace {

constexpr std::size_t kBlockBytes = 256 << 10;

}  // namespace

void Arena::refill(std::size_t bytes) {
  const std::size_t size = std::max(bytes, kBlockBytes);
  blocks_.push_back(std::unique_ptr<char[]>(new char[size]));
  next_ = blocks_.back().get();
  room_ = size;
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

StringId StringPool::add(std::string_view text, std::uint32_t hash, std::uint32_t slot) {
  char* copy = arena_.get(text.size());
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  const auto id = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), hash});
  slots_[slot] = id;
  if (entries_.size() * 2 > mask_) rebuild(slots_.size() * 2);
  return static_cast<StringId>(id);
}

StringId StringPool::find(std::string_view text) const {
  const std::uint32_t h = hash(text.data(), text.size());
  for (std::uint32_t slot = h & mask_; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == h && entry.text() == text) return static_cast<StringId>(slots_[slot]);
  }
  return StringId::none;
}

void StringPool::truncate(std::size_t count) {
  if (count >= entries_.size()) return;
  entries_.resize(count);
  rebuild(slots_.size());
}

}  // namespace stepscope
