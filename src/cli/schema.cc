// `stepscope schema`: the tables that queries, Python and CSV share, with units and meanings; docs/tables.md is made
// from it. Tables of answers depend on what was recorded, so they need a recording (--of).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "base/did_you_mean.h"
#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "query/query.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "session/answer_source.h"

namespace stepscope::cli {
namespace {

using query::TableDescription;

struct SchemaOptions {
  std::string table;
  OpenPaths input;
  bool json = false, markdown = false;
};

constexpr const char* kSchemaExamples = R"(Examples:
  stepscope schema                              the tables of every trace
  stepscope schema kernels                      columns, units and meaning of one
  stepscope schema idle_causes --of trace.json  tables of answers, as this recording gives them
  stepscope schema --json)";

std::string as_json(const std::vector<TableDescription>& tables) {
  report::JsonWriter json;
  json.begin_array();
  for (const TableDescription& table : tables) {
    json.begin_object().key("name").text(table.name).key("meaning").text(table.meaning);
    json.key("columns").begin_array();
    for (const TableColumn& column : table.columns) {
      json.begin_object(report::JsonWriter::Layout::line).key("name").text(column.name);
      json.key("type").text(to_string(column.type)).key("unit").text(to_string(column.unit));
      json.key("meaning").text(column.meaning).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  return json.take() + "\n";
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string as_markdown(const std::vector<TableDescription>& tables) {
  std::string out =
      "# Tables\n\n"
      "What `stepscope query`, `run.table()` in Python and `stepscope convert` to CSV give. Made by `make docs` from "
      "the\nprogram itself, not edited by hand. Tables of answers are named ANSWER_TABLE here and in SQL, "
      "`answers.ANSWER.TABLE` in\nPython; those shown are of small recordings, a richer one may give more.\n";
  for (const TableDescription& table : tables) {
    out += fmt::format("\n## {}\n\n{}\n\n| Column | Type | Unit | Meaning |\n|---|---|---|---|\n", table.name,
                       table.meaning);
    for (const TableColumn& column : table.columns) {
      out += fmt::format("| {} | {} | {} | {} |\n", column.name, to_string(column.type), to_string(column.unit),
                         cell(column.meaning));
    }
  }
  return out;
}

// All tables with their meaning, or the columns of the one.
std::string as_text(const std::vector<TableDescription>& tables, bool one) {
  Table shown{"schema", {{"table"}, {"meaning"}}, {}};
  if (one) shown.columns = {{"column"}, {"type"}, {"unit"}, {"meaning"}};
  for (const TableDescription& table : tables) {
    if (!one) shown.rows.push_back({table.name, table.meaning});
    for (const TableColumn& column : table.columns) {
      const std::string unit(to_string(column.unit));
      if (one) {
        shown.rows.push_back(
            {column.name, std::string(to_string(column.type)), unit.empty() ? Value() : Value(unit), column.meaning});
      }
    }
  }
  const Terminal terminal = terminal_of(1);
  report::TextStyle style;
  style.color = terminal.color;
  style.ascii = terminal.ascii;
  style.width = terminal.width;
  style.max_rows = 0;
  return (one ? tables.front().name + ": " + tables.front().meaning + "\n\n" : "") + report::table_text(shown, style);
}

Result<std::vector<TableDescription>> find_tables(const SchemaOptions& options) {
  std::vector<TableDescription> tables = query::describe_model();
  if (!options.input.paths.empty()) {
    ProgressLine progress;
    const auto run = options.input.open(progress);
    if (!run) return fail(run.error());
    for (TableDescription& table : query::describe_answers(session::answer_source(*run)))
      tables.push_back(std::move(table));
  }
  if (options.table.empty()) return tables;
  std::vector<std::string_view> names;
  for (TableDescription& table : tables) {
    if (table.name == options.table) return std::vector{std::move(table)};
    names.push_back(table.name);
  }
  Error error = unknown_name("table", options.table, names);
  if (options.input.paths.empty()) error.hint += "; tables of answers need --of PATH";
  return fail(std::move(error));
}

Result<void> write_schema(const SchemaOptions& options) {
  const auto tables = find_tables(options);
  if (!tables) return fail(tables.error());
  return write_stdout(options.json       ? as_json(*tables)
                      : options.markdown ? as_markdown(*tables)
                                         : as_text(*tables, !options.table.empty()));
}

void set_up_schema(CLI::App& app, int& code) {
  const auto options = std::make_shared<SchemaOptions>();
  app.add_option("TABLE", options->table, "One table in full")->type_name("");
  app.add_option("--of", options->input.paths, "Show the tables of the answers too, as these recordings give them")
      ->type_name("PATH");
  auto* json = app.add_flag("--json", options->json, "A JSON array of tables");
  app.add_flag("--markdown", options->markdown, "As docs/tables.md has it")->excludes(json);
  options->input.add_options(app);
  app.footer(kSchemaExamples);
  app.callback([options, &code] { code = outcome(write_schema(*options)); });
}

}  // namespace

Command schema_command() { return {"schema", "Say what the tables hold: columns, units, meaning", set_up_schema}; }

}  // namespace stepscope::cli
