#include "query/catalog.h"

#include <algorithm>
#include <cmath>

#include "base/did_you_mean.h"
#include "tables/small_tables.h"

namespace stepscope::query {
namespace {

constexpr std::string_view kSeries = "series_";

Predicate only_kind(const tables::TableSpec& spec, std::string_view kind) {
  const auto at =
      std::find_if(spec.columns.begin(), spec.columns.end(), [](const auto& c) { return c.name == "kind"; });
  return {static_cast<std::size_t>(at - spec.columns.begin()), Compare::equal, {std::string(kind)}};
}

std::vector<ModelTable> list_model_tables() {
  std::vector<ModelTable> all;
  for (const tables::TableSpec& spec : tables::model_tables()) {
    all.push_back({std::string(spec.name), std::string(spec.meaning), &spec, {}});
    if (spec.name == "device_work") {
      all.push_back({"kernels", "Kernels: the rows of device_work of that kind.", &spec, {only_kind(spec, "kernel")}});
    }
  }
  return all;
}

// A series is a table of two columns.
std::shared_ptr<const Table> table_of(const Series& series) {
  auto table = std::make_shared<Table>();
  table->name = series.name;
  table->columns = {{"t_ns", ValueType::integer, Unit::ns, "Time of the value."},
                    {"v", ValueType::real, series.unit, "The value; null where unknown."}};
  for (std::size_t i = 0; i < std::min(series.t_ns.size(), series.v.size()); i++) {
    table->rows.push_back({series.t_ns[i], std::isnan(series.v[i]) ? Value() : Value(series.v[i])});
  }
  return table;
}

std::shared_ptr<const Table> scalars_of(const Answer& answer) {
  auto table = std::make_shared<Table>();
  table->name = "scalars";
  table->columns = {{"name", ValueType::text, Unit::none, "Name of the scalar."},
                    {"value", ValueType::real, Unit::none, "Its value; null where unknown."},
                    {"unit", ValueType::text, Unit::none, "Unit of the value."},
                    {"meaning", ValueType::text, Unit::none, "What it says; for an unknown value why it is unknown."}};
  for (const Scalar& scalar : answer.scalars) {
    table->rows.push_back({scalar.name, scalar.value, std::string(to_string(scalar.unit)), scalar.meaning});
  }
  return table;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

const std::vector<ModelTable>& model_table_list() {
  static const std::vector<ModelTable> all = list_model_tables();
  return all;
}

const ModelTable* model_table(std::string_view name) {
  for (const ModelTable& table : model_table_list()) {
    if (same_name(table.name, name)) return &table;
  }
  return nullptr;
}

std::vector<ValueTable> Catalog::answer_tables(const std::string& name) {
  if (const auto known = made_.find(name); known != made_.end()) return known->second;
  std::vector<ValueTable>& found = made_[name];
  auto answer = source_.answer(name);
  if (!answer) {
    failed_.emplace(name, answer.error());
    return found;
  }
  if (!(*answer)->scalars.empty()) found.push_back({name + "_scalars", (*answer)->summary, scalars_of(**answer)});
  for (const Table& table : (*answer)->tables) {
    found.push_back({name + "_" + table.name, (*answer)->summary, std::shared_ptr<const Table>(*answer, &table)});
  }
  for (const Series& series : (*answer)->series) {
    found.push_back({name + "_" + std::string(kSeries) + series.name, (*answer)->summary, table_of(series)});
  }
  return found;
}

Result<ValueTable> Catalog::value_table(std::string_view name) {
  for (const tables::SmallTable& small : tables::small_tables()) {
    if (!same_name(small.name, name)) continue;
    return ValueTable{std::string(small.name), std::string(small.meaning),
                      std::make_shared<const Table>(small.make(run()))};
  }
  for (const std::string_view answer : source_.answers) {
    if (name.size() <= answer.size() + 1 || name[answer.size()] != '_') continue;
    if (!same_name(name.substr(0, answer.size()), answer)) continue;
    for (const ValueTable& table : answer_tables(std::string(answer))) {
      if (same_name(table.name, name)) return table;
    }
    if (const auto failed = failed_.find(answer); failed != failed_.end()) return fail(failed->second);
  }
  return fail(unknown_table(name));
}

std::vector<std::string> Catalog::names(bool answers) {
  std::vector<std::string> all;
  for (const ModelTable& table : model_table_list()) all.push_back(table.name);
  for (const tables::SmallTable& small : tables::small_tables()) all.emplace_back(small.name);
  if (!answers) return all;
  for (const std::string_view answer : source_.answers) {
    for (const ValueTable& table : answer_tables(std::string(answer))) all.push_back(table.name);
  }
  return all;
}

std::vector<std::string> Catalog::column_names(std::string_view name) {
  std::vector<std::string> names;
  if (const ModelTable* table = model_table(name)) {
    for (const auto& column : table->spec->columns) names.emplace_back(column.name);
  } else if (const auto values = value_table(name)) {
    for (const auto& column : values->table->columns) names.push_back(column.name);
  }
  return names;
}

// Answers are not made for a slip in a name: only those that the name begins with, or that were made before.
Error Catalog::unknown_table(std::string_view name) {
  std::string wanted(name);
  if (wanted.starts_with("answers.")) wanted = wanted.substr(8);
  std::replace(wanted.begin(), wanted.end(), '.', '_');
  for (const std::string_view answer : source_.answers) {
    if (wanted.starts_with(std::string(answer) + "_")) answer_tables(std::string(answer));
  }
  std::vector<std::string> texts = names(false);
  for (const auto& [answer, tables] : made_) {
    for (const ValueTable& table : tables) texts.push_back(table.name);
  }
  texts.emplace_back("ANSWER_TABLE");
  const std::vector<std::string_view> known(texts.begin(), texts.end());
  Error error = unknown_name("table", name, known);
  error.hint += (error.hint.empty() ? "" : "; ") + std::string("`.tables` lists those of the answers too");
  return error;
}

TableDescription describe(const ModelTable& table) {
  TableDescription described{table.name, table.meaning, {}};
  for (const tables::ColumnSpec& column : table.spec->columns) {
    described.columns.push_back(
        {std::string(column.name), tables::value_type(column), column.unit, std::string(column.meaning)});
  }
  return described;
}

TableDescription describe(const ValueTable& table) { return {table.name, table.meaning, table.table->columns}; }

std::vector<TableDescription> describe_model() {
  static const Run empty;
  std::vector<TableDescription> all;
  for (const ModelTable& table : model_table_list()) all.push_back(describe(table));
  for (const tables::SmallTable& small : tables::small_tables()) {
    all.push_back({std::string(small.name), std::string(small.meaning), small.make(empty).columns});
  }
  return all;
}

std::vector<TableDescription> describe_answers(const Source& source) {
  Catalog catalog(source);
  std::vector<TableDescription> all;
  const std::vector<std::string> names = catalog.names(true);
  for (std::size_t i = catalog.names(false).size(); i < names.size(); i++) {
    if (const auto table = catalog.value_table(names[i])) all.push_back(describe(*table));
  }
  return all;
}

}  // namespace stepscope::query
