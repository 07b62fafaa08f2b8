// Column<T>: one typed column of a table, owned or mapped.
//
// Expected workload: tens of columns, up to 10^8 rows each, filled by appending blocks, then only read. Big columns lie
// in pages of their own (base/pages.h) and grow by remapping them instead of copying, so that a growing column never
// needs twice its size. A column can instead be a view of memory that somebody else owns (a mapped cache file); a view
// is read-only and keeps its owner alive.
//
// NarrowColumn: int64 values of which nearly all fit 32 bits (durations, ids): 4 bytes a row, the rare others in a side
// list sorted by row. `absent` is a value of its own.
//
// OptionalColumn<Id>: 32-bit ids that many files do not have at all. Both it and NarrowColumn take no memory while
// every row is absent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/pages.h"

namespace stepscope {

template <class T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  Column() = default;
  Column(Column&& other) noexcept { swap(other); }
  Column& operator=(Column&& other) noexcept {
    Column(std::move(other)).swap(*this);
    return *this;
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  ~Column() {
    if (!owner_) pages::release(data_, capacity_ * sizeof(T));
  }

  // A read-only view of `values`; `owner` keeps the memory alive.
  static Column view(std::span<const T> values, std::shared_ptr<const void> owner) {
    Column column;
    column.data_ = const_cast<T*>(values.data());
    column.size_ = column.capacity_ = values.size();
    column.owner_ = std::move(owner);
    return column;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return data_; }
  T* data() { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<const T> span() const { return {data_, size_}; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  // Rows are addressed by plain numbers or by typed ids (enum class over an unsigned integer).
  template <class Row>
  const T& operator[](Row row) const {
    return data_[static_cast<std::size_t>(row)];
  }
  template <class Row>
  T& operator[](Row row) {
    return data_[static_cast<std::size_t>(row)];
  }

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  void append(std::span<const T> values) {
    if (values.empty()) return;
    if (size_ + values.size() > capacity_) grow(size_ + values.size());
    std::memcpy(static_cast<void*>(data_ + size_), values.data(), values.size_bytes());
    size_ += values.size();
  }
  // Room for `count` more rows, returned uninitialised for the caller to fill.
  T* extend(std::size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    T* first = data_ + size_;
    size_ += count;
    return first;
  }
  void resize(std::size_t size, T fill = T{}) {
    const std::size_t old = size_;  // extend() changes it, and arguments are evaluated in any order
    if (size > old) std::fill_n(extend(size - old), size - old, fill);
    size_ = size;
  }
  void clear() { size_ = 0; }

 private:
  void swap(Column& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(owner_, other.owner_);
  }
  void grow(std::size_t needed) {
    const std::size_t capacity = std::max({needed, capacity_ + capacity_ / 2, std::size_t{64}});
    if (owner_) {  // a view becomes an owned copy on first write
      T* copy = static_cast<T*>(pages::grow(nullptr, 0, capacity * sizeof(T)));
      std::memcpy(static_cast<void*>(copy), data_, size_ * sizeof(T));
      data_ = copy;
      owner_.reset();
    } else {
      data_ = static_cast<T*>(pages::grow(data_, capacity_ * sizeof(T), capacity * sizeof(T)));
    }
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<const void> owner_;
};

class NarrowColumn {
 public:
  static constexpr std::int64_t absent = std::numeric_limits<std::int64_t>::min();

  struct Wide {
    std::uint64_t row;
    std::int64_t value;
  };

  std::size_t size() const { return rows_; }
  std::size_t bytes() const { return low_.bytes() + wide_.bytes(); }

  template <class Row>
  std::int64_t operator[](Row row) const {
    if (low_.empty()) return absent;
    const std::uint32_t low = low_[row];
    if (low < kAbsent) [[likely]]
      return low;
    return low == kAbsent ? absent : wide_at(static_cast<std::uint64_t>(row));
  }
  template <class Row>
  bool has(Row row) const {
    return !low_.empty() && low_[row] != kAbsent;
  }

  void push_back(std::int64_t value) { append({&value, 1}); }
  void append(std::span<const std::int64_t> values) {
    if (low_.empty()) {
      if (std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v == absent; })) {
        rows_ += values.size();
        return;
      }
      low_.resize(rows_, kAbsent);
    }
    std::uint32_t* out = low_.extend(values.size());
    for (std::size_t i = 0; i < values.size(); i++) {
      const std::int64_t value = values[i];
      if (static_cast<std::uint64_t>(value) < kAbsent) [[likely]] {
        out[i] = static_cast<std::uint32_t>(value);
      } else if (value == absent) {
        out[i] = kAbsent;
      } else {
        out[i] = kWide;
        wide_.push_back({rows_ + i, value});
      }
    }
    rows_ += values.size();
  }
  // Overwrites one row, which must exist.
  template <class Row>
  void set(Row at, std::int64_t value) {
    const auto row = static_cast<std::uint64_t>(at);
    if (low_.empty()) low_.resize(rows_, kAbsent);
    if (value == absent) {
      low_[row] = kAbsent;
    } else if (static_cast<std::uint64_t>(value) < kAbsent) {
      low_[row] = static_cast<std::uint32_t>(value);
    } else {
      Wide* found = std::lower_bound(wide_.data(), wide_.data() + wide_.size(), row,
                                     [](const Wide& w, std::uint64_t r) { return w.row < r; });
      if (found != wide_.end() && found->row == row) {
        found->value = value;
      } else {
        const auto index = static_cast<std::size_t>(found - wide_.data());
        wide_.push_back({row, value});
        std::rotate(wide_.data() + index, wide_.data() + wide_.size() - 1, wide_.data() + wide_.size());
      }
      low_[row] = kWide;
    }
  }

  // For the cache: `rows` values that lie in memory as low() and wide() gave them.
  static NarrowColumn view(std::size_t rows, Column<std::uint32_t> low, Column<Wide> wide) {
    NarrowColumn column;
    column.rows_ = rows;
    column.low_ = std::move(low);
    column.wide_ = std::move(wide);
    return column;
  }
  // For the cache: the two parts as they lie in memory.
  const Column<std::uint32_t>& low() const { return low_; }
  const Column<Wide>& wide() const { return wide_; }

 private:
  static constexpr std::uint32_t kAbsent = 0xfffffffe;
  static constexpr std::uint32_t kWide = 0xffffffff;

  std::int64_t wide_at(std::uint64_t row) const {
    const Wide* found =
        std::lower_bound(wide_.begin(), wide_.end(), row, [](const Wide& w, std::uint64_t r) { return w.row < r; });
    return found != wide_.end() && found->row == row ? found->value : absent;
  }

  std::size_t rows_ = 0;
  Column<std::uint32_t> low_;  // empty while every row is absent
  Column<Wide> wide_;
};

template <class Id>
class OptionalColumn {
  static_assert(sizeof(Id) == 4);

 public:
  std::size_t size() const { return rows_; }
  std::size_t bytes() const { return values_.bytes(); }
  template <class Row>
  Id operator[](Row row) const {
    return values_.empty() ? Id::none : values_[row];
  }
  void push_back(Id value) { append({&value, 1}); }
  void append(std::span<const Id> values) {
    if (values_.empty()) {
      if (std::all_of(values.begin(), values.end(), [](Id v) { return v == Id::none; })) {
        rows_ += values.size();
        return;
      }
      values_.resize(rows_, Id::none);
    }
    values_.append(values);
    rows_ += values.size();
  }
  // For the cache.
  const Column<Id>& values() const { return values_; }
  static OptionalColumn view(std::size_t rows, Column<Id> values) {
    OptionalColumn column;
    column.rows_ = rows;
    column.values_ = std::move(values);
    return column;
  }

 private:
  std::size_t rows_ = 0;
  Column<Id> values_;  // empty while every row is none
};

}  // namespace stepscope
