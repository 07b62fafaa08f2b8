// SqliteFile: somebody else's SQLite database, only read. Nothing is ever written, not even beside the file.
//
// A database that rests is opened as immutable: no locks, no -shm file, works in a read-only folder. One whose writer
// left a write-ahead log (-wal) is opened with the log's index in memory, so that what stands in the log is read too.
// A broken page ends the rows of a query early; Rows::failure() says so, and what came before it is good.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stepscope::formats {

inline constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

// The rows of one query, in the order in which SQLite finds them.
class SqliteRows {
 public:
  static constexpr std::int64_t absent = std::numeric_limits<std::int64_t>::min();

  bool next();  // false at the end and where the file is broken
  std::optional<std::string> failure() const { return failure_; }

  int columns() const;
  std::string_view column_name(int column) const;
  bool has(int column) const;        // false: NULL
  bool is_number(int column) const;  // integer or real
  bool is_real(int column) const;
  std::int64_t integer(int column) const;   // absent for what is no number
  double real(int column) const;            // NaN for what is no number
  std::string_view text(int column) const;  // as stored, valid until next(); "" for NULL

 private:
  friend class SqliteFile;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit SqliteRows(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::optional<std::string> failure_;
};

class SqliteFile {
 public:
  struct Leftovers {
    bool wal = false;      // a write-ahead log with content; it was read too
    bool journal = false;  // a rollback journal with content: the last change was never finished
  };

  static Result<SqliteFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const Leftovers& leftovers() const { return leftovers_; }

  // Names as the schema spells them, in its order.
  Result<std::vector<std::string>> tables() const;
  // Empty for a table that is not there.
  std::vector<std::string> columns(std::string_view table) const;
  // `sql` is ours, never the user's.
  Result<SqliteRows> query(const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Error broken(const std::string& what) const;

  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
  Leftovers leftovers_;
};

// `name` in SQL's double quotes.
std::string quoted(std::string_view name);

}  // namespace stepscope::formats
