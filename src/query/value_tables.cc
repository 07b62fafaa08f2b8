// Tables of plain values (of answers, issues, files) as virtual tables of SQLite: few rows, always read whole.
#include <new>

#include "query/virtual_tables.h"

namespace stepscope::query {
namespace {

struct ValueVtab : sqlite3_vtab {
  const Table* table;
  explicit ValueVtab(const Table* from) : sqlite3_vtab{}, table(from) {}
};

struct ValueCursor : sqlite3_vtab_cursor {
  std::size_t row = 0;
};

const Table& table_of(sqlite3_vtab_cursor* cursor) { return *static_cast<ValueVtab*>(cursor->pVtab)->table; }
ValueCursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *static_cast<ValueCursor*>(cursor); }

int connect(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* values = static_cast<const ValueTable*>(aux);
  const int code = sqlite3_declare_vtab(db, declaration(describe(*values)).c_str());
  if (code != SQLITE_OK) return code;
  *out = new (std::nothrow) ValueVtab(values->table.get());
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int disconnect(sqlite3_vtab* vtab) {
  delete static_cast<ValueVtab*>(vtab);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  info->estimatedRows = static_cast<sqlite3_int64>(static_cast<ValueVtab*>(vtab)->table->rows.size());
  info->estimatedCost = static_cast<double>(info->estimatedRows) + 1;
  return SQLITE_OK;
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new (std::nothrow) ValueCursor();
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete &cursor_of(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  cursor_of(cursor).row = 0;
  return SQLITE_OK;
}

int next_row(sqlite3_vtab_cursor* cursor) {
  cursor_of(cursor).row++;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).row >= table_of(cursor).rows.size() ? 1 : 0; }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int which) {
  const std::vector<Value>& row = table_of(cursor).rows[cursor_of(cursor).row];
  const auto at = static_cast<std::size_t>(which);
  if (at >= row.size()) return SQLITE_OK;
  if (const auto* whole = std::get_if<std::int64_t>(&row[at])) sqlite3_result_int64(context, *whole);
  if (const auto* real = std::get_if<double>(&row[at])) sqlite3_result_double(context, *real);
  if (const auto* truth = std::get_if<bool>(&row[at])) sqlite3_result_int(context, *truth ? 1 : 0);
  if (const auto* text = std::get_if<std::string>(&row[at])) {
    sqlite3_result_text64(context, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return SQLITE_OK;
}

int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(cursor_of(cursor).row);
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xDisconnect = disconnect;
  module.xBestIndex = best_index;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next_row;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_number;
  return module;
}

// In quotes, because some of our names are words of SQL (end, class).
std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

int add_value_table(sqlite3* db, const ValueTable& table) {
  static const sqlite3_module module = make_module();
  return sqlite3_create_module_v2(db, table.name.c_str(), &module, new ValueTable(table),
                                  [](void* aux) { delete static_cast<ValueTable*>(aux); });
}

std::string declaration(const TableDescription& table) {
  std::string text = "create table x(";
  for (const TableColumn& column : table.columns) {
    const char* type = column.type == ValueType::text ? "text" : column.type == ValueType::real ? "real" : "integer";
    text += (&column == table.columns.data() ? "" : ", ") + quoted(column.name) + " " + type;
  }
  return text + ")";
}

}  // namespace stepscope::query
