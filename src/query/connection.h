// Connection: an SQLite in memory that can read our tables and do nothing else.
//
// Refused before a statement runs: everything but SELECT and the pragmas that list columns. There is no file to attach,
// no extension to load, temporary data stays in memory. While it runs: time by a progress handler, memory by SQLite's
// hard limit on its heap, single values by their length.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "query/catalog.h"
#include "query/limits.h"
#include "query/virtual_tables.h"

namespace stepscope::query {

struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(Catalog& catalog, const Limits& limits, const Deadline& deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Tables of answers are made and added when the statement turns out to name them.
  Result<Statement> prepare(const std::string& sql);
  // A table of rows for the next statements.
  Result<void> add_rows(const std::string& name, const std::string& declaration, std::shared_ptr<const ValueRows> rows);
  // One step; true: there is a row.
  Result<bool> step(sqlite3_stmt* statement);

 private:
  Connection(Catalog& catalog, const Limits& limits, const Deadline& deadline)
      : catalog_(catalog), limits_(limits), deadline_(deadline) {}
  Result<void> set_up();
  Result<bool> add_missing_table(const std::string& message);
  Error error_of(int code);
  Error statement_error(const std::string& sql);

  Catalog& catalog_;
  const Limits& limits_;
  const Deadline& deadline_;
  sqlite3* db_ = nullptr;
  std::string refused_;  // what the authorizer did not allow
};

}  // namespace stepscope::query
