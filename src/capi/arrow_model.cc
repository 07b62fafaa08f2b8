// Tables of the model → Arrow: each column of a TableSpec becomes one array per trace.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "capi/arrow_source.h"
#include "capi/arrow_text.h"

namespace stepscope::capi {

using namespace tables;

namespace {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

const char* arrow_format(NumberType type) {
  static constexpr std::array letters{"C", "c", "S", "s", "I", "i", "L", "l", "f", "g"};
  return letters[static_cast<std::size_t>(type)];
}

// Adds the bitmap buffer to `parts`; `has_value(row)` says which rows have a value.
template <class HasValue>
void add_validity(ArrayParts& parts, std::size_t rows, HasValue&& has_value) {
  Bitmap bitmap(rows);
  std::size_t values = 0;
  for (std::size_t row = 0; row < rows; row++) {
    if (!has_value(row)) continue;
    bitmap.set(row);
    values++;
  }
  parts.null_count = static_cast<std::int64_t>(rows - values);
  parts.buffers.push_back(parts.null_count == 0 ? nullptr : keep_vector(bitmap.take(), parts.keep));
}

// Zero-copy. Only a column at an odd address (a view into a file) is copied: the interface asks for aligned values.
ArrowArray borrowed_array(const Borrowed& column, std::size_t rows, const Keep& run) {
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  const std::size_t present = std::min(rows, column.rows);  // a derived column may not have been filled
  if (column.nulls == NullRule::never && present == rows) {
    parts.buffers.push_back(nullptr);
  } else {
    add_validity(parts, rows, [&](std::size_t row) { return row < present && !column.is_null(row); });
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(column.data) % column.width == 0;
  if (rows != 0 && present == rows && aligned) {
    parts.buffers.push_back(column.data);
    parts.keep.push_back(run);
  } else {
    std::vector<std::uint64_t> copy((rows * column.width + 7) / 8);
    if (present != 0) std::memcpy(copy.data(), column.data, present * column.width);
    parts.buffers.push_back(keep_vector(std::move(copy), parts.keep));
  }
  return make_array(std::move(parts));
}

ArrowArray integer_array(IntegerAt at, const Trace& trace, std::size_t rows) {
  std::vector<std::int64_t> values(rows);
  for (std::size_t row = 0; row < rows; row++) values[row] = at(trace, row);
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  add_validity(parts, rows, [&](std::size_t row) { return values[row] != kAbsent; });
  parts.buffers.push_back(keep_vector(std::move(values), parts.keep));
  return make_array(std::move(parts));
}

ArrowArray boolean_array(BooleanAt at, const Trace& trace, std::size_t rows) {
  Bitmap values(rows);
  for (std::size_t row = 0; row < rows; row++) {
    if (at(trace, row)) values.set(row);
  }
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  parts.buffers = {nullptr};
  parts.buffers.push_back(keep_vector(values.take(), parts.keep));
  return make_array(std::move(parts));
}

ArrowArray coded_array(const Codes& codes, const ColumnDictionary& dictionary, std::size_t which, const Trace& trace,
                       std::size_t rows) {
  const std::vector<std::int32_t>& index = dictionary.index[which];
  std::vector<std::int32_t> values(rows);
  for (std::size_t row = 0; row < rows; row++) {
    const std::uint32_t code = codes.code(trace, row);
    values[row] = code < index.size() ? index[code] : -1;
  }
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  add_validity(parts, rows, [&](std::size_t row) { return values[row] >= 0; });
  if (parts.null_count != 0) {  // a consumer may look at the index of a null
    for (std::int32_t& value : values) value = value < 0 ? 0 : value;
  }
  parts.buffers.push_back(keep_vector(std::move(values), parts.keep));
  parts.dictionary.push_back(text_array(dictionary.texts, 0, {}));
  return make_array(std::move(parts));
}

ArrowSchema column_schema(const ColumnSpec& column) {
  SchemaParts parts;
  parts.name = std::string(column.name);
  parts.metadata = column_metadata(column.unit, column.meaning);
  std::visit(Overload{[&](BorrowedColumn at) { parts.format = arrow_format(number_type(at)); },
                      [&](IntegerAt) { parts.format = "l"; }, [&](BooleanAt) { parts.format = "b"; },
                      [&](const Codes&) {
                        parts.format = kIndexFormat;
                        SchemaParts text;
                        text.format = kTextFormat;
                        parts.dictionary.push_back(make_schema(std::move(text)));
                      }},
             column.values);
  return make_schema(std::move(parts));
}

// The state of one stream. Dictionaries are made at the first batch, for all traces at once.
class ModelTable {
 public:
  ModelTable(const TableSpec& spec, std::shared_ptr<const Run> run) : spec_(spec), run_(std::move(run)) {}

  ArrowArray batch(std::size_t which) {
    const Trace& trace = (run_.get()->*spec_.traces)[which];
    const std::size_t rows = spec_.rows(trace);
    ArrayParts parts;
    parts.length = static_cast<std::int64_t>(rows);
    parts.buffers = {nullptr};
    for (std::size_t i = 0; i < spec_.columns.size(); i++) {
      parts.children.push_back(std::visit(
          Overload{[&](BorrowedColumn at) { return borrowed_array(at(trace), rows, run_); },
                   [&](IntegerAt at) { return integer_array(at, trace, rows); },
                   [&](BooleanAt at) { return boolean_array(at, trace, rows); },
                   [&](const Codes& codes) { return coded_array(codes, dictionary(i, codes), which, trace, rows); }},
          spec_.columns[i].values));
    }
    return make_array(std::move(parts));
  }

 private:
  const ColumnDictionary& dictionary(std::size_t column, const Codes& codes) {
    const auto found = dictionaries_.find(column);
    if (found != dictionaries_.end()) return found->second;
    return dictionaries_.emplace(column, make_dictionary(codes, spec_.rows, run_.get()->*spec_.traces)).first->second;
  }

  const TableSpec& spec_;
  std::shared_ptr<const Run> run_;
  std::map<std::size_t, ColumnDictionary> dictionaries_;
};

}  // namespace

TableSource model_source(const TableSpec& spec, std::shared_ptr<const Run> run) {
  const std::size_t batches = (run.get()->*spec.traces).size();
  auto table = std::make_shared<ModelTable>(spec, std::move(run));
  auto schema = [&spec] {
    std::vector<ArrowSchema> columns;
    for (const ColumnSpec& column : spec.columns) columns.push_back(column_schema(column));
    return table_schema(spec.name, spec.meaning, std::move(columns));
  };
  return {schema, batches, [table](std::size_t which) { return table->batch(which); }};
}

}  // namespace stepscope::capi
