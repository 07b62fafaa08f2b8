#include "query/predicate.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>

namespace stepscope::query {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers up to here are exact as reals
constexpr double kWholeLimit = 9223372036854775808.0;

bool is_number(const Constant& constant) { return !std::holds_alternative<std::string>(constant); }

// A real is compared with whole numbers exactly: by the whole numbers around it.
std::int64_t floor_of(double value) {
  if (value >= kWholeLimit) return INT64_MAX;
  if (value < -kWholeLimit) return INT64_MIN;
  return static_cast<std::int64_t>(std::floor(value));
}

WholeRange equal_range(const Constant& constant) {
  if (const auto* whole = std::get_if<std::int64_t>(&constant)) return {*whole, *whole};
  const double real = std::get<double>(constant);
  if (real != std::floor(real) || std::fabs(real) >= kWholeLimit) return {1, 0};
  return {floor_of(real), floor_of(real)};
}

std::int64_t one_less(std::int64_t value) { return value == INT64_MIN ? value : value - 1; }
std::int64_t one_more(std::int64_t value) { return value == INT64_MAX ? value : value + 1; }

// The largest whole number at most the constant, or below it.
std::int64_t upper(const Constant& constant, bool with) {
  if (const auto* whole = std::get_if<std::int64_t>(&constant)) return with ? *whole : one_less(*whole);
  const double real = std::get<double>(constant);
  const std::int64_t below = floor_of(real);
  return !with && static_cast<double>(below) == real ? one_less(below) : below;
}
std::int64_t lower(const Constant& constant, bool with) {
  if (const auto* whole = std::get_if<std::int64_t>(&constant)) return with ? *whole : one_more(*whole);
  const double real = std::get<double>(constant);
  const std::int64_t below = floor_of(real);
  return with && static_cast<double>(below) == real ? below : one_more(below);
}

double as_real(const Constant& constant) {
  if (const auto* whole = std::get_if<std::int64_t>(&constant)) return static_cast<double>(*whole);
  return std::get<double>(constant);
}

template <class T, class U>
bool holds(Compare compare, const T& value, const U& constant) {
  switch (compare) {
    case Compare::less: return value < constant;
    case Compare::at_most: return value <= constant;
    case Compare::more: return value > constant;
    case Compare::at_least: return value >= constant;
    default: return value == constant;
  }
}

}  // namespace

bool supported(ValueType type, const Predicate& predicate) {
  const auto& constants = predicate.constants;
  switch (predicate.compare) {
    case Compare::is_null:
    case Compare::not_null: return true;
    case Compare::like:
    case Compare::glob: return type == ValueType::text && constants.size() == 1 && !is_number(constants[0]);
    default: break;
  }
  return std::all_of(constants.begin(), constants.end(), [&](const Constant& constant) {
    if (type == ValueType::text) return !is_number(constant);
    if (!is_number(constant) || std::isnan(as_real(constant))) return false;
    return type != ValueType::real || std::holds_alternative<double>(constant) || std::fabs(as_real(constant)) < kExact;
  });
}

WholeRange whole_range(const Predicate& predicate) {
  WholeRange range;
  const auto& constants = predicate.constants;
  switch (predicate.compare) {
    case Compare::equal:
      range = {INT64_MAX, kAbsent + 1};
      for (const Constant& constant : constants) {
        const WholeRange one = equal_range(constant);
        if (one.low > one.high) continue;
        range = {std::min(range.low, one.low), std::max(range.high, one.high)};
      }
      break;
    case Compare::less:
    case Compare::at_most: range.high = upper(constants[0], predicate.compare == Compare::at_most); break;
    case Compare::more:
    case Compare::at_least: range.low = lower(constants[0], predicate.compare == Compare::at_least); break;
    case Compare::is_null: return {1, 0};
    default: break;
  }
  range.low = std::max(range.low, kAbsent + 1);  // null is no number
  return range;
}

Filter::Filter(const Predicate& predicate, const tables::ColumnReader& column)
    : predicate_(predicate), column_(column) {
  if (column.type() == ValueType::text) {
    verdicts_.resize(column.code_count());
  } else if (column.type() != ValueType::real) {
    range_ = whole_range(predicate);
  }
}

bool Filter::passes(std::int64_t value) const {
  if (predicate_.compare == Compare::is_null) return value == kAbsent;
  if (value < range_.low || value > range_.high) return false;
  const bool several = predicate_.constants.size() > 1;
  if (predicate_.compare != Compare::not_equal && !several) return true;
  const bool found =
      std::any_of(predicate_.constants.begin(), predicate_.constants.end(), [&](const Constant& constant) {
        const WholeRange one = equal_range(constant);
        return one.low <= value && value <= one.high;
      });
  return found == (predicate_.compare == Compare::equal);
}

bool Filter::passes(double value) const {
  if (predicate_.compare == Compare::is_null) return std::isnan(value);
  if (std::isnan(value)) return false;
  if (predicate_.compare == Compare::not_null) return true;
  const bool any = std::any_of(predicate_.constants.begin(), predicate_.constants.end(), [&](const Constant& constant) {
    return holds(predicate_.compare, value, as_real(constant));
  });
  return any != (predicate_.compare == Compare::not_equal);
}

bool Filter::passes(std::string_view text) const {
  switch (predicate_.compare) {
    case Compare::is_null: return false;
    case Compare::not_null: return true;
    case Compare::like:
      return sqlite3_strlike(std::get<std::string>(predicate_.constants[0]).c_str(), std::string(text).c_str(), 0) == 0;
    case Compare::glob:
      return sqlite3_strglob(std::get<std::string>(predicate_.constants[0]).c_str(), std::string(text).c_str()) == 0;
    default: break;
  }
  const bool any = std::any_of(predicate_.constants.begin(), predicate_.constants.end(), [&](const Constant& constant) {
    return holds(predicate_.compare, text, std::string_view(std::get<std::string>(constant)));
  });
  return any != (predicate_.compare == Compare::not_equal);
}

void Filter::keep_texts(std::size_t first, std::size_t block, std::vector<std::uint32_t>& rows) {
  std::vector<std::uint32_t> codes(block);
  column_.codes(first, codes);
  std::erase_if(rows, [&](std::uint32_t row) {
    const std::uint32_t code = codes[row - first];
    if (code >= verdicts_.size()) return predicate_.compare != Compare::is_null;
    std::uint8_t& verdict = verdicts_[code];
    if (verdict == 0) verdict = passes(column_.text(code)) ? 1 : 2;
    return verdict == 2;
  });
}

void Filter::keep(std::size_t first, std::size_t block, std::vector<std::uint32_t>& rows) {
  if (rows.empty()) return;
  if (column_.type() == ValueType::text) return keep_texts(first, block, rows);
  if (column_.type() == ValueType::real) {
    std::vector<double> values(block);
    column_.reals(first, values);
    std::erase_if(rows, [&](std::uint32_t row) { return !passes(values[row - first]); });
    return;
  }
  std::vector<std::int64_t> values(block);
  column_.integers(first, values);
  std::erase_if(rows, [&](std::uint32_t row) { return !passes(values[row - first]); });
}

}  // namespace stepscope::query
