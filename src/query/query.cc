#include "query/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/did_you_mean.h"
#include "query/connection.h"
#include "query/grouped_rows.h"
#include "query/top_rows.h"

namespace stepscope::query {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

// Counts rows and stops at the limit.
class LimitedSink : public RowSink {
 public:
  LimitedSink(RowSink& sink, std::uint64_t limit, Outcome& outcome) : sink_(sink), limit_(limit), outcome_(outcome) {}
  void columns(std::span<const std::string> names) override { sink_.columns(names); }
  bool row(std::span<const Value> cells) override {
    if (limit_ != 0 && outcome_.rows == limit_) return outcome_.cut = true, false;
    outcome_.rows++;
    return sink_.row(cells);
  }

 private:
  RowSink& sink_;
  std::uint64_t limit_;
  Outcome& outcome_;
};

std::string hex_of(const void* bytes, int size) {
  std::string text = "x'";
  for (int i = 0; i < size; i++) text += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return text + "'";
}

void take_cell(sqlite3_stmt* statement, int column, Value& out) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: out = std::int64_t{sqlite3_column_int64(statement, column)}; break;
    case SQLITE_FLOAT: out = sqlite3_column_double(statement, column); break;
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      if (auto* known = std::get_if<std::string>(&out)) {
        known->assign(text, size);  // keeps the memory of the row before
      } else {
        out = std::string(text, size);
      }
      break;
    }
    case SQLITE_BLOB:
      out = hex_of(sqlite3_column_blob(statement, column), sqlite3_column_bytes(statement, column));
      break;
    default: out = std::monostate();
  }
}

Result<void> run_statement(Connection& connection, sqlite3_stmt* statement, RowSink& sink) {
  const int count = sqlite3_column_count(statement);
  std::vector<std::string> names;
  for (int i = 0; i < count; i++) names.emplace_back(sqlite3_column_name(statement, i));
  sink.columns(names);
  std::vector<Value> cells(static_cast<std::size_t>(count));
  for (;;) {
    const auto more = connection.step(statement);
    if (!more) return fail(more.error());
    if (!*more) return {};
    for (int i = 0; i < count; i++) take_cell(statement, i, cells[static_cast<std::size_t>(i)]);
    if (!sink.row(cells)) return {};
  }
}

// False: the statement is not of that shape, or only SQLite can do it or word what is wrong; nothing was written.
Result<bool> run_grouped(Connection& connection, const Run& run, const std::string& sql, const Limits& limits,
                         const Deadline& deadline, RowSink& sink) {
  const auto select = parse_grouped_select(sql);
  if (!select) return false;
  auto rows = grouped_rows(*select, run, deadline, limits);
  if (!rows) return fail(rows.error());
  if (*rows == nullptr) return false;
  const std::string name(kGroupedTable);
  if (auto added = connection.add_rows(name, grouped_declaration(*select), *std::move(rows)); !added) {
    return fail(added.error());
  }
  const auto statement = connection.prepare(select->outer);
  if (!statement) return false;
  if (auto done = run_statement(connection, statement->get(), sink); !done) return fail(done.error());
  return true;
}

// True: the shortcut was taken.
Result<bool> run_select(Catalog& catalog, const std::string& sql, const Limits& limits, RowSink& sink) {
  const Deadline deadline(limits.seconds);
  auto connection = Connection::open(catalog, limits, deadline);
  if (!connection) return fail(connection.error());
  if (limits.shortcut) {
    auto grouped = run_grouped(**connection, catalog.run(), sql, limits, deadline, sink);
    if (!grouped || *grouped) return grouped;
  }
  auto narrowed = limits.shortcut ? narrow_to_top(catalog.run(), sql, deadline, limits)
                                  : Result<std::optional<std::string>>(std::nullopt);
  if (!narrowed) return fail(narrowed.error());
  auto statement = (*connection)->prepare(*narrowed ? **narrowed : sql);
  if (!statement && *narrowed) statement = (*connection)->prepare(sql);  // for the words of its error
  if (!statement) return fail(statement.error());
  if (auto done = run_statement(**connection, statement->get(), sink); !done) return fail(done.error());
  return narrowed->has_value();
}

// ---- what begins with a dot

void list_tables(Catalog& catalog, RowSink& sink) {
  const std::vector<std::string> heads{"table", "columns", "meaning"};
  sink.columns(heads);
  for (const std::string& name : catalog.names(true)) {
    TableDescription described;
    if (const ModelTable* table = model_table(name)) {
      described = describe(*table);
    } else if (const auto values = catalog.value_table(name)) {
      described = describe(*values);
    }
    const std::vector<Value> row{name, static_cast<std::int64_t>(described.columns.size()), described.meaning};
    if (!sink.row(row)) return;
  }
}

bool show_columns(const TableDescription& table, RowSink& sink) {
  return std::all_of(table.columns.begin(), table.columns.end(), [&](const TableColumn& column) {
    const std::string_view unit = to_string(column.unit);
    const std::vector<Value> row{table.name, column.name, std::string(to_string(column.type)),
                                 unit.empty() ? Value() : Value(std::string(unit)), column.meaning};
    return sink.row(row);
  });
}

Result<void> show_schema(Catalog& catalog, std::string_view name, RowSink& sink) {
  std::vector<TableDescription> shown;
  if (name.empty()) {
    shown = describe_model();
  } else if (const ModelTable* table = model_table(name)) {
    shown.push_back(describe(*table));
  } else {
    const auto values = catalog.value_table(name);
    if (!values) return fail(values.error());
    shown.push_back(describe(*values));
  }
  const std::vector<std::string> heads{"table", "column", "type", "unit", "meaning"};
  sink.columns(heads);
  for (const TableDescription& table : shown) {
    if (!show_columns(table, sink)) break;
  }
  return {};
}

void list_recipes(RowSink& sink) {
  const std::vector<std::string> heads{"recipe", "sentence"};
  sink.columns(heads);
  for (const Recipe& recipe : recipes()) {
    const std::vector<Value> row{std::string(recipe.name), std::string(recipe.sentence)};
    if (!sink.row(row)) return;
  }
}

Result<void> run_dot_command(Catalog& catalog, std::string_view command, RowSink& sink) {
  const std::size_t space = std::min(command.find(' '), command.size());
  const std::string_view name = command.substr(0, space), argument = trimmed(command.substr(space));
  if (name == ".tables") return list_tables(catalog, sink), Result<void>();
  if (name == ".schema") return show_schema(catalog, argument, sink);
  if (name == ".recipes") return list_recipes(sink), Result<void>();
  constexpr std::array<std::string_view, 3> known{".tables", ".schema", ".recipes"};
  return fail(unknown_name("command", name, known));
}

}  // namespace

Result<Outcome> run_query(const Source& source, const std::string& sql, const Limits& limits, RowSink& sink) {
  Outcome outcome;
  LimitedSink limited(sink, limits.rows, outcome);
  Catalog catalog(source);
  const std::string_view text = trimmed(sql);
  if (text.starts_with('.')) {
    if (auto done = run_dot_command(catalog, text, limited); !done) return fail(done.error());
    return outcome;
  }
  const auto shortcut = run_select(catalog, sql, limits, limited);
  if (!shortcut) return fail(shortcut.error());
  outcome.shortcut = *shortcut;
  return outcome;
}

Result<Recipe> recipe_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  return fail(unknown_name("recipe", name, names));
}

}  // namespace stepscope::query
