// A table of the model, declared as data: what its columns are called, mean and where their values lie.
//
// Every door reads them here: the C ABI (Arrow), SQL, CSV, the pages of the documentation. A number whose column
// already lies in memory as such is borrowed without a copy; the rest is computed row by row when asked for. Text is a
// code of a list (the string pool, categories, names of an enum), so that each distinct text is handled once.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/column.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::tables {

// What a number is in memory.
enum class NumberType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };

constexpr bool is_real(NumberType type) { return type >= NumberType::f32; }

template <class T>
constexpr NumberType number_type() {
  if constexpr (std::is_enum_v<T>) {
    return number_type<std::underlying_type_t<T>>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? NumberType::f32 : NumberType::f64;
  } else {
    constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 6;
    return static_cast<NumberType>(size + (std::is_signed_v<T> ? 1 : 0));
  }
}

enum class NullRule : std::uint8_t { never, equals, nan };

// A column of the run as it lies in memory.
struct Borrowed {
  const void* data = nullptr;
  std::size_t rows = 0;   // of a derived column that was not filled: fewer than the table has
  std::size_t width = 0;  // bytes per row
  NumberType type = NumberType::i64;
  NullRule nulls = NullRule::never;  // equals: a row whose bytes are those of `absent` has no value
  std::uint64_t absent = 0;

  bool is_null(std::size_t row) const;
};

template <class T>
Borrowed borrow(const Column<T>& column) {
  const NullRule nulls = std::is_floating_point_v<T> ? NullRule::nan : NullRule::never;
  return {column.data(), column.size(), sizeof(T), number_type<T>(), nulls, 0};
}
template <class T>
Borrowed borrow(const Column<T>& column, T absent) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, &absent, sizeof(T));
  return {column.data(), column.size(), sizeof(T), number_type<T>(), NullRule::equals, bytes};
}

using BorrowedColumn = Borrowed (*)(const Trace&);
using IntegerAt = std::int64_t (*)(const Trace&, std::size_t row);  // kAbsent: null
using BooleanAt = bool (*)(const Trace&, std::size_t row);

inline constexpr std::uint32_t kNoCode = 0xffffffff;

// Text by number: ids of the string pool, categories, tracks, enums.
struct Codes {
  std::uint32_t (*code)(const Trace&, std::size_t row);  // kNoCode: null
  std::size_t (*count)(const Trace&);                    // every code is smaller
  std::string_view (*text)(const Trace&, std::uint32_t code);
};

// How the values of a column lie in one trace; what a reader that looks for one of them can make use of.
enum class Order : std::uint8_t {
  none,
  constant,    // all the same
  row_number,  // the row's own number
  ascending,
};

struct ColumnSpec {
  std::string_view name;
  Unit unit = Unit::none;
  std::string_view meaning;
  std::variant<BorrowedColumn, IntegerAt, BooleanAt, Codes> values;
  Order order = Order::none;
};

struct TableSpec {
  std::string_view name;
  std::string_view meaning;
  std::size_t (*rows)(const Trace&);
  std::vector<ColumnSpec> columns;
  std::vector<Trace> Run::*traces = &Run::traces;  // whose rows they are
};

ValueType value_type(const ColumnSpec& column);
// What a borrowed column holds does not depend on the rows.
NumberType number_type(BorrowedColumn column);

// All tables that have one batch per trace of theirs, in the order in which they are listed.
std::span<const TableSpec> model_tables();

}  // namespace stepscope::tables
