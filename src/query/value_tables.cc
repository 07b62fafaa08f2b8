// Tables of plain values (of answers, issues, files) as virtual tables of SQLite: few rows, always read whole.
#include <new>

#include "query/virtual_tables.h"

namespace stepscope::query {
namespace {

struct Module {
  std::string declaration;
  std::shared_ptr<const ValueRows> rows;
};

struct ValueVtab : sqlite3_vtab {
  const ValueRows* rows;
  explicit ValueVtab(const ValueRows* from) : sqlite3_vtab{}, rows(from) {}
};

struct ValueCursor : sqlite3_vtab_cursor {
  std::size_t row = 0;
};

const ValueRows& rows_of(sqlite3_vtab_cursor* cursor) { return *static_cast<ValueVtab*>(cursor->pVtab)->rows; }
ValueCursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *static_cast<ValueCursor*>(cursor); }

int connect(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* module = static_cast<const Module*>(aux);
  const int code = sqlite3_declare_vtab(db, module->declaration.c_str());
  if (code != SQLITE_OK) return code;
  *out = new (std::nothrow) ValueVtab(module->rows.get());
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int disconnect(sqlite3_vtab* vtab) {
  delete static_cast<ValueVtab*>(vtab);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  info->estimatedRows = static_cast<sqlite3_int64>(static_cast<ValueVtab*>(vtab)->rows->size());
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

int at_end(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).row >= rows_of(cursor).size() ? 1 : 0; }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int which) try {
  const Value value = rows_of(cursor).cell(cursor_of(cursor).row, static_cast<std::size_t>(which));
  if (const auto* whole = std::get_if<std::int64_t>(&value)) sqlite3_result_int64(context, *whole);
  if (const auto* real = std::get_if<double>(&value)) sqlite3_result_double(context, *real);
  if (const auto* truth = std::get_if<bool>(&value)) sqlite3_result_int(context, *truth ? 1 : 0);
  if (const auto* text = std::get_if<std::string>(&value)) {
    sqlite3_result_text64(context, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return SQLITE_OK;
} catch (const std::bad_alloc&) {
  return SQLITE_NOMEM;
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

class TableRows : public ValueRows {
 public:
  explicit TableRows(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  std::size_t size() const override { return table_->rows.size(); }
  Value cell(std::size_t row, std::size_t column) const override {
    const std::vector<Value>& cells = table_->rows[row];
    return column < cells.size() ? cells[column] : Value();
  }

 private:
  std::shared_ptr<const Table> table_;
};

// In quotes, because some of our names are words of SQL (end, class).
std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

int add_rows(sqlite3* db, const std::string& name, const std::string& declaration,
             std::shared_ptr<const ValueRows> rows) {
  static const sqlite3_module module = make_module();
  return sqlite3_create_module_v2(db, name.c_str(), &module, new Module{declaration, std::move(rows)},
                                  [](void* aux) { delete static_cast<Module*>(aux); });
}

int add_value_table(sqlite3* db, const ValueTable& table) {
  return add_rows(db, table.name, declaration(describe(table)), std::make_shared<TableRows>(table.table));
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
