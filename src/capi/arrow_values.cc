// Tables of plain values (answers, issues, files) and series → Arrow, one batch each.
#include <cmath>

#include "capi/arrow_source.h"
#include "capi/arrow_text.h"

namespace stepscope::capi {
namespace {

const char* format_of(ValueType type) {
  switch (type) {
    case ValueType::integer: return "l";
    case ValueType::real: return "g";
    case ValueType::text: return kTextFormat;
    case ValueType::boolean: return "b";
  }
  return "l";
}

ArrowSchema column_schema(const std::string& name, const char* format, Unit unit, std::string_view meaning) {
  SchemaParts parts;
  parts.format = format;
  parts.name = name;
  parts.metadata = column_metadata(unit, meaning);
  return make_schema(std::move(parts));
}

// The value as a number; false when it is unknown (or of a type the column did not promise).
bool number(const Value& value, std::int64_t& out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return out = *integer, true;
  return false;
}
bool number(const Value& value, double& out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return out = static_cast<double>(*integer), true;
  if (const auto* real = std::get_if<double>(&value)) return out = *real, !std::isnan(*real);
  return false;
}

const Value& cell(const Table& table, std::size_t row, std::size_t column) {
  static const Value unknown;
  return column < table.rows[row].size() ? table.rows[row][column] : unknown;
}

template <class T>
ArrowArray number_array(const Table& table, std::size_t column) {
  const std::size_t rows = table.rows.size();
  std::vector<T> values(rows);
  Bitmap bitmap(rows);
  ArrayParts parts;
  for (std::size_t row = 0; row < rows; row++) {
    if (number(cell(table, row, column), values[row])) {
      bitmap.set(row);
    } else {
      parts.null_count++;
    }
  }
  parts.length = static_cast<std::int64_t>(rows);
  parts.buffers.push_back(parts.null_count == 0 ? nullptr : keep_vector(bitmap.take(), parts.keep));
  parts.buffers.push_back(keep_vector(std::move(values), parts.keep));
  return make_array(std::move(parts));
}

ArrowArray boolean_array(const Table& table, std::size_t column) {
  const std::size_t rows = table.rows.size();
  Bitmap values(rows), bitmap(rows);
  ArrayParts parts;
  for (std::size_t row = 0; row < rows; row++) {
    const bool* value = std::get_if<bool>(&cell(table, row, column));
    if (value == nullptr) {
      parts.null_count++;
      continue;
    }
    bitmap.set(row);
    if (*value) values.set(row);
  }
  parts.length = static_cast<std::int64_t>(rows);
  parts.buffers.push_back(parts.null_count == 0 ? nullptr : keep_vector(bitmap.take(), parts.keep));
  parts.buffers.push_back(keep_vector(values.take(), parts.keep));
  return make_array(std::move(parts));
}

ArrowArray text_column(const Table& table, std::size_t column) {
  auto texts = std::make_shared<Texts>();
  Bitmap bitmap(table.rows.size());
  std::int64_t nulls = 0;
  for (std::size_t row = 0; row < table.rows.size(); row++) {
    const auto* text = std::get_if<std::string>(&cell(table, row, column));
    texts->add(text == nullptr ? std::string_view() : std::string_view(*text));
    if (text == nullptr) {
      nulls++;
    } else {
      bitmap.set(row);
    }
  }
  return text_array(std::move(texts), nulls, bitmap.take());
}

ArrowArray column_array(const Table& table, std::size_t column) {
  switch (table.columns[column].type) {
    case ValueType::integer: return number_array<std::int64_t>(table, column);
    case ValueType::real: return number_array<double>(table, column);
    case ValueType::text: return text_column(table, column);
    case ValueType::boolean: return boolean_array(table, column);
  }
  return text_column(table, column);
}

ArrowArray record_batch(std::size_t rows, std::vector<ArrowArray> columns) {
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  parts.buffers = {nullptr};
  parts.children = std::move(columns);
  return make_array(std::move(parts));
}

template <class T>
ArrowArray series_column(const std::vector<T>& values, std::size_t rows, const Keep& owner) {
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(rows);
  Bitmap bitmap(rows);
  if constexpr (std::is_floating_point_v<T>) {
    for (std::size_t row = 0; row < rows; row++) {
      if (std::isnan(values[row])) {
        parts.null_count++;
      } else {
        bitmap.set(row);
      }
    }
  }
  parts.buffers.push_back(parts.null_count == 0 ? nullptr : keep_vector(bitmap.take(), parts.keep));
  parts.buffers.push_back(rows == 0 ? keep_vector(std::vector<T>(), parts.keep) : values.data());
  parts.keep.push_back(owner);
  return make_array(std::move(parts));
}

}  // namespace

TableSource value_source(std::string name, std::string meaning, std::shared_ptr<const Table> table) {
  auto schema = [name = std::move(name), meaning = std::move(meaning), table] {
    std::vector<ArrowSchema> columns;
    for (const TableColumn& column : table->columns) {
      columns.push_back(column_schema(column.name, format_of(column.type), column.unit, column.meaning));
    }
    return table_schema(name, meaning, std::move(columns));
  };
  auto batch = [table = std::move(table)](std::size_t) {
    std::vector<ArrowArray> columns;
    for (std::size_t i = 0; i < table->columns.size(); i++) columns.push_back(column_array(*table, i));
    return record_batch(table->rows.size(), std::move(columns));
  };
  return {std::move(schema), 1, std::move(batch)};
}

TableSource series_source(std::string name, std::shared_ptr<const Series> series) {
  auto schema = [name = std::move(name), series] {
    std::vector<ArrowSchema> columns;
    columns.push_back(column_schema("t_ns", "l", Unit::ns, "Time of the value."));
    columns.push_back(column_schema("v", "g", series->unit, "The value; null where unknown."));
    return table_schema(name, "A series over time.", std::move(columns));
  };
  auto batch = [series = std::move(series)](std::size_t) {
    const std::size_t rows = std::min(series->t_ns.size(), series->v.size());
    std::vector<ArrowArray> columns;
    columns.push_back(series_column(series->t_ns, rows, series));
    columns.push_back(series_column(series->v, rows, series));
    return record_batch(rows, std::move(columns));
  };
  return {std::move(schema), 1, std::move(batch)};
}

}  // namespace stepscope::capi
