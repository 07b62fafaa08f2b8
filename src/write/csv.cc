// csv: a folder with one file for each table of the model, exact values, unknown empty.
#include <filesystem>

#include "formats/out_file.h"
#include "report/report.h"
#include "tables/column_reader.h"
#include "tables/small_tables.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

std::vector<Value> names_of(const tables::TableSpec& spec) {
  std::vector<Value> names;
  for (const auto& column : spec.columns) names.push_back(std::string(column.name));
  return names;
}

void add_row(formats::OutFile& file, std::string& line, std::span<const Value> cells) {
  line.clear();
  report::append_csv_row(line, cells);
  file.add(line);
}

Result<void> write_model(const tables::TableSpec& spec, const Run& run, const std::string& path) {
  auto file = formats::OutFile::create(path);
  if (!file) return fail(file.error());
  std::string line;
  add_row(*file, line, names_of(spec));
  std::vector<Value> cells(spec.columns.size());
  for (const Trace& trace : run.*spec.traces) {
    std::vector<tables::ColumnReader> readers;
    for (const auto& column : spec.columns) readers.emplace_back(column, trace);
    for (std::size_t row = 0; row < spec.rows(trace); row++) {
      for (std::size_t i = 0; i < cells.size(); i++) cells[i] = readers[i].value(row);
      add_row(*file, line, cells);
    }
  }
  return file->finish();
}

Result<void> write_values(const Table& table, const std::string& path) {
  auto file = formats::OutFile::create(path);
  if (!file) return fail(file.error());
  std::string line;
  std::vector<Value> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  add_row(*file, line, names);
  for (const auto& row : table.rows) add_row(*file, line, row);
  return file->finish();
}

Result<void> write_csv(const Run& run, const std::string& out, const WriteOptions&) {
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) {
    return fail({ErrorKind::unreadable, "the folder cannot be made: " + error.message(), out, std::nullopt,
                 "Name a folder that is not there yet, in one that may be written to"});
  }
  const auto path = [&](std::string_view table) { return (std::filesystem::path(out) / table).string() + ".csv"; };
  for (const tables::TableSpec& spec : tables::model_tables()) {
    if (auto done = write_model(spec, run, path(spec.name)); !done) return done;
  }
  for (const tables::SmallTable& small : tables::small_tables()) {
    if (auto done = write_values(small.make(run), path(small.name)); !done) return done;
  }
  return {};
}

}  // namespace

Writer csv_writer() {
  return {"csv", "a folder with one CSV for each table of the model, telemetry as samples.csv", true, true, write_csv};
}

}  // namespace stepscope::write
