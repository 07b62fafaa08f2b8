// Our tables as SQLite sees them. No statement makes them: a module whose name is that of the table is enough.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "query/catalog.h"
#include "query/limits.h"

namespace stepscope::query {

// Rows of plain values that SQLite reads one after the other.
struct ValueRows {
  virtual ~ValueRows() = default;
  virtual std::size_t size() const = 0;
  virtual Value cell(std::size_t row, std::size_t column) const = 0;
};

// `run` and `deadline` must outlive the connection. All return SQLite's code.
int add_model_table(sqlite3* db, const ModelTable& table, const Run& run, const Deadline& deadline);
int add_value_table(sqlite3* db, const ValueTable& table);
int add_rows(sqlite3* db, const std::string& name, const std::string& declaration,
             std::shared_ptr<const ValueRows> rows);

// "create table x(…)" as SQLite wants to be told of the columns.
std::string declaration(const TableDescription& table);

}  // namespace stepscope::query
