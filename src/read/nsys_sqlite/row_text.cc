#include "read/nsys_sqlite/row_text.h"

#include <algorithm>

#include "read/nsys_sqlite/payload.h"
#include "run/json_text.h"

namespace stepscope::read::nsys {
namespace {

using run::json_string;

bool names_a_string(std::string_view column) {
  static constexpr std::array columns{"nameId", "textId", "jsonTextId", "demangledName", "shortName", "mangledName"};
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::string payload_text(const PayloadSchemas& schemas, std::string_view bytes) {
  std::string out;
  for (const PayloadField& field : schemas.decode(bytes)) {
    out += (out.empty() ? "{" : ", ") + json_string(field.name) + ": " + json_string(field.text);
  }
  return out.empty() ? std::to_string(bytes.size()) + " bytes" : out + "}";
}

std::string value_text(const Export& file, const PayloadSchemas& schemas, const formats::SqliteRows& row, int column) {
  if (row.column_name(column) == "binaryData") {
    const std::string text = payload_text(schemas, row.text(column));
    return text.front() == '{' ? text : json_string(text);
  }
  if (!row.is_number(column)) return json_string(row.text(column));
  if (row.is_real(column)) return json_string(row.text(column));
  const std::int64_t number = row.integer(column);
  const std::size_t string = names_a_string(row.column_name(column)) ? file.string_index(number) : std::string::npos;
  return string == std::string::npos ? std::to_string(number) : json_string(file.string_at(string));
}

}  // namespace

Result<std::vector<std::string>> row_texts(const std::string& path, std::span<const std::uint64_t> places) {
  Result<Export> opened = Export::open(path);
  if (!opened) return fail(opened.error());
  Export& file = *opened;
  const PayloadSchemas schemas(file);
  std::vector<std::string> texts;
  for (const std::uint64_t place : places) {
    const std::uint64_t table = place >> kRowBits;
    const std::uint64_t row_id = place & ((std::uint64_t{1} << kRowBits) - 1);
    const std::string_view name = table < kTableNames.size() ? kTableNames[table] : std::string_view();
    auto row = file.file().query("SELECT * FROM " + formats::quoted(name) + " WHERE rowid = " + std::to_string(row_id));
    if (!row || !row->next()) {
      return fail(
          {ErrorKind::changed, "the row is no longer where it was read", path, std::nullopt, "Open the file again"});
    }
    std::string text = "{\"table\": " + json_string(name);
    for (int column = 0; column < row->columns(); column++) {
      if (!row->has(column)) continue;
      text += ", " + json_string(row->column_name(column)) + ": " + value_text(file, schemas, *row, column);
    }
    texts.push_back(text + "}");
  }
  return texts;
}

}  // namespace stepscope::read::nsys
