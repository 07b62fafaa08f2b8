#include "tables/column_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepscope::tables {
namespace {

// Rows of a derived column that was not filled have no value.
template <class From, class To>
void copy_rows(const Borrowed& column, std::size_t first, std::span<To> out, To null) {
  const auto* values = static_cast<const From*>(column.data);
  From absent;
  std::memcpy(&absent, &column.absent, sizeof(From));
  const bool nulls = column.nulls == NullRule::equals;
  const std::size_t present = std::min(out.size(), column.rows - std::min(first, column.rows));
  for (std::size_t i = 0; i < present; i++) {
    const From value = values[first + i];
    out[i] = nulls && value == absent ? null : static_cast<To>(value);
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(present), out.end(), null);
}

void copy_integers(const Borrowed& column, std::size_t first, std::span<std::int64_t> out) {
  switch (column.type) {
    case NumberType::u8: return copy_rows<std::uint8_t>(column, first, out, kAbsent);
    case NumberType::i8: return copy_rows<std::int8_t>(column, first, out, kAbsent);
    case NumberType::u16: return copy_rows<std::uint16_t>(column, first, out, kAbsent);
    case NumberType::i16: return copy_rows<std::int16_t>(column, first, out, kAbsent);
    case NumberType::u32: return copy_rows<std::uint32_t>(column, first, out, kAbsent);
    case NumberType::i32: return copy_rows<std::int32_t>(column, first, out, kAbsent);
    case NumberType::u64: return copy_rows<std::uint64_t>(column, first, out, kAbsent);
    case NumberType::i64: return copy_rows<std::int64_t>(column, first, out, kAbsent);
    case NumberType::f32:
    case NumberType::f64: std::fill(out.begin(), out.end(), kAbsent);
  }
}

}  // namespace

ColumnReader::ColumnReader(const ColumnSpec& spec, const Trace& trace)
    : spec_(&spec), trace_(&trace), type_(value_type(spec)) {
  if (const auto* column = std::get_if<BorrowedColumn>(&spec.values)) borrowed_ = (*column)(trace);
}

void ColumnReader::integers(std::size_t first, std::span<std::int64_t> out) const {
  if (std::holds_alternative<BorrowedColumn>(spec_->values)) return copy_integers(borrowed_, first, out);
  if (const auto* integer_at = std::get_if<IntegerAt>(&spec_->values)) {
    for (std::size_t i = 0; i < out.size(); i++) out[i] = (*integer_at)(*trace_, first + i);
  } else if (const auto* boolean_at = std::get_if<BooleanAt>(&spec_->values)) {
    for (std::size_t i = 0; i < out.size(); i++) out[i] = (*boolean_at)(*trace_, first + i) ? 1 : 0;
  } else {
    std::fill(out.begin(), out.end(), kAbsent);
  }
}

void ColumnReader::reals(std::size_t first, std::span<double> out) const {
  constexpr double null = std::numeric_limits<double>::quiet_NaN();
  if (borrowed_.type == NumberType::f32) return copy_rows<float>(borrowed_, first, out, null);
  if (borrowed_.type == NumberType::f64) return copy_rows<double>(borrowed_, first, out, null);
  std::fill(out.begin(), out.end(), null);
}

void ColumnReader::codes(std::size_t first, std::span<std::uint32_t> out) const {
  const auto* codes = std::get_if<Codes>(&spec_->values);
  if (codes == nullptr) return std::fill(out.begin(), out.end(), kNoCode);
  for (std::size_t i = 0; i < out.size(); i++) out[i] = codes->code(*trace_, first + i);
}

std::int64_t ColumnReader::integer(std::size_t row) const {
  std::int64_t value;
  integers(row, {&value, 1});
  return value;
}
double ColumnReader::real(std::size_t row) const {
  double value;
  reals(row, {&value, 1});
  return value;
}
std::uint32_t ColumnReader::code(std::size_t row) const {
  const auto* codes = std::get_if<Codes>(&spec_->values);
  return codes == nullptr ? kNoCode : codes->code(*trace_, row);
}

std::size_t ColumnReader::code_count() const {
  const auto* codes = std::get_if<Codes>(&spec_->values);
  return codes == nullptr ? 0 : codes->count(*trace_);
}
std::string_view ColumnReader::text(std::uint32_t code) const {
  return std::get<Codes>(spec_->values).text(*trace_, code);
}

Value ColumnReader::value(std::size_t row) const {
  switch (type_) {
    case ValueType::integer: {
      const std::int64_t number = integer(row);
      return number == kAbsent ? Value() : Value(number);
    }
    case ValueType::boolean: return integer(row) != 0;
    case ValueType::real: {
      const double number = real(row);
      return std::isnan(number) ? Value() : Value(number);
    }
    case ValueType::text: {
      const std::uint32_t which = code(row);
      return which < code_count() ? Value(std::string(text(which))) : Value();
    }
  }
  return {};
}

}  // namespace stepscope::tables
