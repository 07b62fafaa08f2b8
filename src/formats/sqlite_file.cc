#include "formats/sqlite_file.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

namespace stepscope::formats {
namespace {

// More than any export has in one row; a hostile file must not make SQLite reserve gigabytes.
constexpr int kLongestValue = 256 << 20;

bool has_content(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
}

// The path inside a file: URI, where ?, # and % have a meaning.
std::string escaped(std::string_view path) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      out += '%';
      out += hex[static_cast<unsigned char>(c) >> 4];
      out += hex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

void SqliteRows::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void SqliteFile::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

bool SqliteRows::next() {
  if (!statement_ || failure_) return false;
  const int outcome = sqlite3_step(statement_.get());
  if (outcome == SQLITE_ROW) return true;
  if (outcome != SQLITE_DONE) failure_ = sqlite3_errmsg(sqlite3_db_handle(statement_.get()));
  return false;
}

int SqliteRows::columns() const { return sqlite3_column_count(statement_.get()); }
std::string_view SqliteRows::column_name(int column) const { return sqlite3_column_name(statement_.get(), column); }
bool SqliteRows::has(int column) const { return sqlite3_column_type(statement_.get(), column) != SQLITE_NULL; }
bool SqliteRows::is_real(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_FLOAT; }
bool SqliteRows::is_number(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

std::int64_t SqliteRows::integer(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  if (type == SQLITE_INTEGER) return sqlite3_column_int64(statement_.get(), column);
  if (type != SQLITE_FLOAT) return absent;
  const double value = sqlite3_column_double(statement_.get(), column);
  return value >= -9.2e18 && value <= 9.2e18 ? static_cast<std::int64_t>(value) : absent;
}

double SqliteRows::real(int column) const {
  return is_number(column) ? sqlite3_column_double(statement_.get(), column) : std::nan("");
}

std::string_view SqliteRows::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Error SqliteFile::broken(const std::string& what) const {
  return {ErrorKind::malformed, "is a damaged SQLite database (" + what + ")", path_, std::nullopt,
          "Copy or export it again"};
}

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  SqliteFile file;
  file.path_ = path;
  if (access(path.c_str(), R_OK) != 0) {
    return fail({ErrorKind::unreadable, std::string("cannot be opened: ") + std::strerror(errno), path, std::nullopt,
                 "Check the path and its permissions"});
  }
  file.leftovers_ = {has_content(path + "-wal"), has_content(path + "-journal")};
  // With a log: no locks either, and exclusive mode keeps the log's index in memory instead of a -shm file.
  const std::string how = file.leftovers_.wal ? "?mode=ro&vfs=unix-none" : "?immutable=1";
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(("file:" + escaped(path) + how).c_str(), &database,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  file.database_.reset(database);
  if (opened != SQLITE_OK) return fail(file.broken(sqlite3_errstr(opened)));
  sqlite3_extended_result_codes(database, 0);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  // The file is a stranger's: its schema may not call functions, and a broken page is an error, never a crash.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_exec(database, "PRAGMA cell_size_check=1; PRAGMA mmap_size=0; PRAGMA cache_size=-16384", nullptr, nullptr,
               nullptr);
  if (file.leftovers_.wal) sqlite3_exec(database, "PRAGMA locking_mode=exclusive", nullptr, nullptr, nullptr);
  const auto tables = file.tables();
  if (!tables) return fail(tables.error());
  return file;
}

Result<std::vector<std::string>> SqliteFile::tables() const {
  // Views and virtual tables are not looked at: they could run anything.
  Result<SqliteRows> rows =
      query("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'create virtual%' ORDER BY rowid");
  if (!rows) return fail(rows.error());
  std::vector<std::string> names;
  while (rows->next()) names.emplace_back(rows->text(0));
  if (names.empty() && rows->failure()) return fail(broken(*rows->failure()));
  return names;
}

std::vector<std::string> SqliteFile::columns(std::string_view table) const {
  std::vector<std::string> names;
  Result<SqliteRows> rows = query("PRAGMA table_info(" + quoted(table) + ")");
  while (rows && rows->next()) names.emplace_back(rows->text(1));
  return names;
}

Result<SqliteRows> SqliteFile::query(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int prepared =
      sqlite3_prepare_v2(database_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  if (prepared != SQLITE_OK) return fail(broken(sqlite3_errmsg(database_.get())));
  return SqliteRows(statement);
}

}  // namespace stepscope::formats
