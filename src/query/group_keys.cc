#include "query/group_keys.h"

#include <algorithm>

namespace stepscope::query {
namespace {

constexpr std::uint32_t kUnasked = 0xffffffff;

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) { return (std::uint64_t{high} << 32) | low; }

}  // namespace

GroupKeys::GroupKeys(TableReaders& readers, std::vector<std::size_t> columns) : readers_(readers) {
  columns_.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); i++) {
    const ValueType type = tables::value_type(readers.spec().columns[columns[i]]);
    columns_[i].column = columns[i];
    columns_[i].text = type == ValueType::text;
  }
}

// Null is number 0, texts follow.
void GroupKeys::text_numbers(KeyColumn& key, const Scan& scan, std::vector<std::uint32_t>& out) {
  const tables::ColumnReader& reader = readers_.column(scan.trace(), key.column);
  if (key.known.empty()) key.known.assign(reader.code_count(), kUnasked);
  block_codes_.resize(scan.size());
  reader.codes(scan.first(), block_codes_);
  const auto rows = scan.rows();
  for (std::size_t i = 0; i < rows.size(); i++) {
    const std::uint32_t code = block_codes_[rows[i] - scan.first()];
    if (code >= key.known.size()) {
      out[i] = 0;
      continue;
    }
    std::uint32_t& number = key.known[code];
    if (number == kUnasked) number = static_cast<std::uint32_t>(key.texts.intern(reader.text(code))) + 1;
    out[i] = number;
  }
}

void GroupKeys::numbers_of(KeyColumn& key, const Scan& scan, std::vector<std::uint32_t>& out) {
  out.resize(scan.rows().size());
  if (key.text) return text_numbers(key, scan, out);
  block_values_.resize(scan.size());
  readers_.column(scan.trace(), key.column).integers(scan.first(), block_values_);
  const auto rows = scan.rows();
  for (std::size_t i = 0; i < rows.size(); i++) {
    out[i] = key.numbers[static_cast<std::uint64_t>(block_values_[rows[i] - scan.first()])];
  }
}

void GroupKeys::groups_of(const Scan& scan, std::vector<std::uint32_t>& out) {
  if (columns_.empty()) return out.assign(scan.rows().size(), 0);
  if (scan.trace() != trace_) {
    trace_ = scan.trace();
    for (KeyColumn& key : columns_) key.known.clear();
  }
  for (std::size_t c = 0; c < columns_.size(); c++) {
    KeyColumn& key = columns_[c];
    numbers_of(key, scan, c == 0 ? out : block_numbers_);
    for (std::size_t i = 0; i < out.size(); i++) {
      // The first column is paired too: its own numbers count values of texts that no selected row may have.
      out[i] = key.pairs[c == 0 ? out[i] : pair_of(out[i], block_numbers_[i])];
    }
  }
  groups_ = columns_.back().pairs.size();
}

Value GroupKeys::value(std::uint32_t group, std::size_t wanted) const {
  for (std::size_t c = columns_.size(); c-- > 0;) {
    const KeyColumn& key = columns_[c];
    const std::uint64_t pair = key.pairs.key(group);
    const auto number = static_cast<std::uint32_t>(pair);
    if (c != wanted) {
      group = static_cast<std::uint32_t>(pair >> 32);
      continue;
    }
    if (key.text) return number == 0 ? Value() : Value(std::string(key.texts[static_cast<StringId>(number - 1)]));
    const auto value = static_cast<std::int64_t>(key.numbers.key(number));
    return value == kAbsent ? Value() : Value(value);
  }
  return {};
}

bool GroupKeys::is_null(std::uint32_t group) const {
  const KeyColumn& key = columns_.back();
  const auto number = static_cast<std::uint32_t>(key.pairs.key(group));
  return key.text ? number == 0 : static_cast<std::int64_t>(key.numbers.key(number)) == kAbsent;
}

}  // namespace stepscope::query
