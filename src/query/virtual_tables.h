// Our tables as SQLite sees them. No statement makes them: a module whose name is that of the table is enough.
#pragma once

#include <sqlite3.h>

#include "query/catalog.h"
#include "query/limits.h"

namespace stepscope::query {

// `run` and `deadline` must outlive the connection. Both return SQLite's code.
int add_model_table(sqlite3* db, const ModelTable& table, const Run& run, const Deadline& deadline);
int add_value_table(sqlite3* db, const ValueTable& table);

// "create table x(…)" as SQLite wants to be told of the columns.
std::string declaration(const TableDescription& table);

}  // namespace stepscope::query
