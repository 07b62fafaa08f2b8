// Catalog: the tables that a statement can name, and where their rows come from.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "query/query.h"
#include "query/scan.h"

namespace stepscope::query {

// A table of the model under the name that queries use; `only` selects the rows that belong to it.
struct ModelTable {
  std::string name;
  std::string meaning;
  const tables::TableSpec* spec = nullptr;
  std::vector<Predicate> only;
};

// A table of plain values: small tables of the run, tables and series of answers.
struct ValueTable {
  std::string name;
  std::string meaning;
  std::shared_ptr<const Table> table;
};

const std::vector<ModelTable>& model_table_list();
const ModelTable* model_table(std::string_view name);

class Catalog {
 public:
  explicit Catalog(const Source& source) : source_(source) {}

  const Run& run() const { return *source_.run; }
  // A table of values; makes the answer it belongs to where it must.
  Result<ValueTable> value_table(std::string_view name);
  // Names of the tables of the model and of the run; those of answers only where `answers` (they are made).
  std::vector<std::string> names(bool answers);
  // The columns of a table, for errors; empty where there is no such table.
  std::vector<std::string> column_names(std::string_view table);
  Error unknown_table(std::string_view name);

 private:
  std::vector<ValueTable> answer_tables(const std::string& answer);

  const Source& source_;
  std::map<std::string, std::vector<ValueTable>, std::less<>> made_;  // by answer
  std::map<std::string, Error, std::less<>> failed_;
};

TableDescription describe(const ModelTable& table);
TableDescription describe(const ValueTable& table);

// ASCII only, as SQL compares names.
bool same_name(std::string_view a, std::string_view b);

}  // namespace stepscope::query
