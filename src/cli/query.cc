// `stepscope query`: SQL over traces, as text, CSV or JSON.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/open_paths.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "query/query.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "session/answer_source.h"

namespace stepscope::cli {
namespace {

constexpr std::uint64_t kTextRows = 10'000;  // a terminal shows no more by default
constexpr std::array<std::string_view, 4> kBinaryEndings{".arrow", ".arrows", ".feather", ".parquet"};

struct QueryOptions {
  OpenPaths input;
  std::vector<std::string> words;  // paths, then the statement
  std::string recipe;
  bool json = false, csv = false;
  std::string output = "-";
  double timeout = 30;
  std::int64_t limit = -1;  // not given
};

constexpr const char* kQueryExamples =
    R"sql(Examples:
  stepscope query trace.json.gz "select name, sum(dur_ns) as total_ns from kernels group by name order by 2 desc"
  stepscope query traces/ .tables               every table with its meaning, those of the answers too
  stepscope query traces/ '.schema kernels'     columns, units and meaning
  stepscope query traces/ "select * from idle_causes"
  stepscope query traces/ .recipes              statements that come with stepscope
  stepscope query traces/ --recipe kernel_sums -o kernels.csv

Text is rounded as in the report; --csv and --json are exact. The dialect is SQLite's, the traces are never changed.)sql";

// CSV and JSON row by row: the result itself is never held.
class LineSink : public query::RowSink {
 public:
  explicit LineSink(bool json) : json_(json) {}
  void columns(std::span<const std::string> names) override {
    names_.assign(names.begin(), names.end());
    if (json_) {
      writer_.begin_array();
    } else {
      report::append_csv_row(text_, std::vector<Value>(names_.begin(), names_.end()));
    }
  }
  bool row(std::span<const Value> cells) override {
    if (!json_) return report::append_csv_row(text_, cells), true;
    writer_.begin_object(report::JsonWriter::Layout::line);
    for (std::size_t i = 0; i < cells.size(); i++) writer_.key(names_[i]).value(cells[i]);
    writer_.end_object();
    return true;
  }
  std::string take() {
    if (!json_) return std::move(text_);
    writer_.end_array();
    return writer_.take() + "\n";
  }

 private:
  bool json_;
  std::vector<std::string> names_;
  std::string text_;
  report::JsonWriter writer_;
};

// Units stand in the names of our columns, and people keep them in theirs.
Unit unit_of(const TableColumn& column) {
  if (column.type != ValueType::integer && column.type != ValueType::real) return Unit::none;
  if (column.name.ends_with("_ns")) return Unit::ns;
  if (column.name.ends_with("_bytes")) return Unit::bytes;
  if (column.name == "flop" || column.name.ends_with("_flop")) return Unit::flop;
  if (column.name.ends_with("flop_per_s")) return Unit::flop_per_s;
  return column.name.ends_with("gb_per_s") ? Unit::gb_per_s : Unit::none;
}

std::string as_text(Table table, const QueryOptions& options) {
  for (TableColumn& column : table.columns) column.unit = unit_of(column);
  return report::table_text(table, text_style(options.output));
}

// The statement: the last word, or the recipe's.
Result<std::string> take_statement(QueryOptions& options) {
  std::string sql;
  if (!options.recipe.empty()) {
    const auto recipe = query::recipe_named(options.recipe);
    if (!recipe) return fail(recipe.error());
    sql = recipe->sql;
  } else if (options.words.size() >= 2) {
    sql = options.words.back();
    options.words.pop_back();
  } else {
    return fail({ErrorKind::usage, "a path and a statement are needed", "", std::nullopt,
                 "Write stepscope query PATH \"select …\", or see stepscope query --help"});
  }
  options.input.paths = options.words;
  return sql;
}

// The name of the file says what people expect in it; --csv and --json win over it.
Result<void> follow_file_name(QueryOptions& options) {
  if (options.json || options.csv) return {};
  const std::string ending = std::filesystem::path(options.output).extension().string();
  options.json = ending == ".json";
  options.csv = ending == ".csv";
  if (std::find(kBinaryEndings.begin(), kBinaryEndings.end(), ending) == kBinaryEndings.end()) return {};
  return fail(
      {ErrorKind::usage, "is not a format that query writes", options.output, std::nullopt,
       "Write --csv or --json, or have it in Python: stepscope.open(PATH).query(SQL).to_arrow() gives the table "
       "that pyarrow.feather.write_feather and pyarrow.parquet.write_table take"});
}

Result<void> answer_query(QueryOptions& options) {
  const auto sql = take_statement(options);
  if (!sql) return fail(sql.error());
  if (auto followed = follow_file_name(options); !followed) return followed;
  ProgressLine progress;
  const auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output); !kept) return kept;
  query::Limits limits;
  limits.seconds = options.timeout;
  const bool lines = options.json || options.csv;
  limits.rows = options.limit >= 0 ? static_cast<std::uint64_t>(options.limit) : lines ? 0 : kTextRows;
  progress.show("running the query", -1);
  query::TableSink table;
  LineSink line(options.json);
  const auto outcome =
      query::run_query(session::answer_source(*run), *sql, limits, lines ? static_cast<query::RowSink&>(line) : table);
  progress.erase();
  if (!outcome) return fail(outcome.error());
  auto written = write_file(options.output, lines ? line.take() : as_text(table.take(), options));
  if (!written) return written;
  if (outcome->cut) {
    print_notice(fmt::format("only the first {} rows are shown; --limit N shows more, --limit 0 all", outcome->rows));
  }
  return {};
}

void set_up_query(CLI::App& app, int& code) {
  const auto options = std::make_shared<QueryOptions>();
  app.add_option("PATH", options->words,
                 "Trace files or folders of ranks, then the statement (or .tables, .schema, .recipes)")
      ->required()
      ->type_name("");
  app.add_option("--recipe", options->recipe, "A statement that comes with stepscope; .recipes lists them")
      ->type_name("RECIPE");
  auto* json = app.add_flag("--json", options->json, "A JSON array with an object for each row");
  app.add_flag("--csv", options->csv, "CSV with a line of names first")->excludes(json);
  app.add_option("-o,--output", options->output,
                 "Write to FILE, CSV or JSON where its name ends so; - is standard output")
      ->type_name("FILE");
  app.add_option("--limit", options->limit, "Rows at most; 0: all (default: 10000 as text, else all)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000'000'000));
  app.add_option("--timeout", options->timeout, "How long the query may take: 500ms, 2m (default: 30, seconds)")
      ->type_name("TIME")
      ->transform(duration(0.001, 1e9));
  options->input.add_options(app);
  app.footer(kQueryExamples);
  app.callback([options, &code] { code = outcome(answer_query(*options)); });
}

}  // namespace

Command query_command() { return {"query", "Ask traces in SQL", set_up_query}; }

}  // namespace stepscope::cli
