#include "tables/table_spec.h"

#include <cmath>

namespace stepscope::tables {
namespace {

template <class T>
T load(const void* data, std::size_t row) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + row * sizeof(T), sizeof(T));
  return value;
}

template <class T>
bool equals(const Borrowed& column, std::size_t row) {
  return load<T>(column.data, row) == load<T>(&column.absent, 0);
}

}  // namespace

bool Borrowed::is_null(std::size_t row) const {
  if (nulls == NullRule::never) return false;
  if (nulls == NullRule::nan) {
    return width == sizeof(float) ? std::isnan(load<float>(data, row)) : std::isnan(load<double>(data, row));
  }
  switch (width) {
    case 1: return equals<std::uint8_t>(*this, row);
    case 2: return equals<std::uint16_t>(*this, row);
    case 4: return equals<std::uint32_t>(*this, row);
    default: return equals<std::uint64_t>(*this, row);
  }
}

NumberType number_type(BorrowedColumn column) {
  static const Trace empty;
  return column(empty).type;
}

ValueType value_type(const ColumnSpec& column) {
  if (const auto* borrowed = std::get_if<BorrowedColumn>(&column.values)) {
    return is_real(number_type(*borrowed)) ? ValueType::real : ValueType::integer;
  }
  if (std::holds_alternative<IntegerAt>(column.values)) return ValueType::integer;
  return std::holds_alternative<BooleanAt>(column.values) ? ValueType::boolean : ValueType::text;
}

}  // namespace stepscope::tables
