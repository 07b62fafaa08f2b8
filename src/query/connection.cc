#include "query/connection.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "base/did_you_mean.h"
#include "query/virtual_tables.h"
#include "tables/small_tables.h"

namespace stepscope::query {
namespace {

constexpr std::string_view kNoTable = "no such table: ", kNoColumn = "no such column: ";
constexpr int kProgressOps = 20'000;    // of SQLite's machine, well below a millisecond
constexpr int kLongestText = 64 << 20;  // of one value, and so of what a function may make
constexpr std::size_t kLongestStatement = 1'000'000;

Error usage(std::string message, std::string hint = {}) {
  return {ErrorKind::usage, std::move(message), "", std::nullopt, std::move(hint)};
}

bool allowed_pragma(std::string_view name) {
  constexpr std::array<std::string_view, 3> names{"table_info", "table_xinfo", "function_list"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) { return same_name(one, name); });
}

// The one loads code, the other tells and takes addresses of functions.
bool allowed_function(std::string_view name) {
  return !same_name(name, "load_extension") && !same_name(name, "fts3_tokenizer");
}

// What a refused action is, in the words of a person. Only SELECT and what it needs is let through.
const char* refusal(int action, const char* first, const char* second) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return nullptr;
    case SQLITE_FUNCTION: return allowed_function(second == nullptr ? "" : second) ? nullptr : "this function";
    case SQLITE_PRAGMA: return allowed_pragma(first == nullptr ? "" : first) ? nullptr : "this pragma";
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return "attaching a database";
    case SQLITE_INSERT:
    case SQLITE_UPDATE:  // declaring a virtual table looks like this too; SQLite itself guards its own table
      return same_name(first == nullptr ? "" : first, "sqlite_master") ? nullptr : "changing data";
    case SQLITE_DELETE: return "changing data";
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT: return "a transaction";
    default: return "changing tables";
  }
}

int authorize(void* refused, int action, const char* first, const char* second, const char*, const char*) {
  const char* why = refusal(action, first, second);
  if (why == nullptr) return SQLITE_OK;
  *static_cast<std::string*>(refused) = why;
  return SQLITE_DENY;
}

int on_progress(void* deadline) { return static_cast<const Deadline*>(deadline)->passed() ? 1 : 0; }

// "character 8: ", "line 3, character 7: "; empty where SQLite does not know.
std::string place_of(const std::string& sql, int offset) {
  if (offset < 0) return {};
  const std::string_view before(sql.data(), std::min(sql.size(), static_cast<std::size_t>(offset)));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (lines == 0 ? 0 : before.rfind('\n') + 1) + 1;
  return (lines == 0 ? "" : "line " + std::to_string(lines + 1) + ", ") + "character " + std::to_string(column) + ": ";
}

int error_offset(sqlite3* db) {
#if SQLITE_VERSION_NUMBER >= 3038000
  return sqlite3_error_offset(db);
#else
  (void)db;
  return -1;
#endif
}

// Words of the statement that could be names.
std::vector<std::string> words_of(const std::string& sql) {
  std::vector<std::string> words(1);
  for (const char c : sql) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

bool only_space_or_comment(const char* rest) {
  while (*rest != '\0') {
    if (std::isspace(static_cast<unsigned char>(*rest)) != 0 || *rest == ';') {
      rest++;
    } else if (std::strncmp(rest, "--", 2) == 0) {
      rest += std::strcspn(rest, "\n");
    } else if (const char* end = std::strncmp(rest, "/*", 2) == 0 ? std::strstr(rest + 2, "*/") : nullptr) {
      rest = end + 2;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(Catalog& catalog, const Limits& limits, const Deadline& deadline) {
  std::unique_ptr<Connection> connection(new Connection(catalog, limits, deadline));
  if (auto done = connection->set_up(); !done) return fail(done.error());
  return connection;
}

Connection::~Connection() { sqlite3_close_v2(db_); }

Result<void> Connection::set_up() {
  sqlite3_hard_heap_limit64(static_cast<sqlite3_int64>(limits_.memory_bytes));
  constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(":memory:", &db_, flags, nullptr) != SQLITE_OK) return fail(error_of(SQLITE_NOMEM));
  sqlite3_exec(db_, "pragma temp_store=memory", nullptr, nullptr, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(db_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kLongestText);
  sqlite3_limit(db_, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
  sqlite3_limit(db_, SQLITE_LIMIT_WORKER_THREADS, 0);
  int code = SQLITE_OK;
  for (const ModelTable& table : model_table_list()) {
    if (code == SQLITE_OK) code = add_model_table(db_, table, catalog_.run(), deadline_);
  }
  for (const tables::SmallTable& small : tables::small_tables()) {
    if (code == SQLITE_OK) code = add_value_table(db_, *catalog_.value_table(small.name));
  }
  if (code != SQLITE_OK) return fail(error_of(code));
  sqlite3_set_authorizer(db_, authorize, &refused_);
  sqlite3_progress_handler(db_, kProgressOps, on_progress, const_cast<Deadline*>(&deadline_));
  return {};
}

Result<void> Connection::add_rows(const std::string& name, const std::string& declaration,
                                  std::shared_ptr<const ValueRows> rows) {
  const int code = query::add_rows(db_, name, declaration, std::move(rows));
  return code == SQLITE_OK ? Result<void>() : fail(error_of(code));
}

// True when the table that SQLite missed is there now.
Result<bool> Connection::add_missing_table(const std::string& message) {
  if (!message.starts_with(kNoTable)) return false;
  const auto table = catalog_.value_table(message.substr(kNoTable.size()));
  if (!table) return fail(table.error());
  if (const int code = add_value_table(db_, *table); code != SQLITE_OK) return fail(error_of(code));
  return true;
}

Result<Statement> Connection::prepare(const std::string& sql) {
  if (sql.size() > kLongestStatement) return fail(usage("the statement is longer than a million characters"));
  if (sql.find('\0') != std::string::npos) return fail(usage("the statement holds a NUL character"));
  for (;;) {
    refused_.clear();
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    const int code = sqlite3_prepare_v2(db_, sql.c_str(), static_cast<int>(sql.size()) + 1, &made, &rest);
    Statement statement(made);
    if (code == SQLITE_OK && made == nullptr)
      return fail(usage("the statement is empty", "Ask for something: select …"));
    if (code == SQLITE_OK && !only_space_or_comment(rest)) {
      return fail(usage("there is more than one statement", "Give one select; its parts can be joined with `with`"));
    }
    if (code == SQLITE_OK && sqlite3_stmt_readonly(made) == 0) return fail(error_of(SQLITE_AUTH));
    if (code == SQLITE_OK) return statement;
    if (code != SQLITE_ERROR) return fail(error_of(code));
    const auto added = add_missing_table(sqlite3_errmsg(db_));
    if (!added) {
      Error error = added.error();
      if (error.kind == ErrorKind::usage) error.message = place_of(sql, error_offset(db_)) + error.message;
      return fail(std::move(error));
    }
    if (!*added) return fail(statement_error(sql));
  }
}

// An unknown column is looked for in the tables that the statement names.
Error Connection::statement_error(const std::string& sql) {
  const std::string message = sqlite3_errmsg(db_);
  const std::string place = place_of(sql, error_offset(db_));
  if (!message.starts_with(kNoColumn)) return usage(place + message);
  const std::string wanted = message.substr(message.find_last_of(" .") + 1);
  std::vector<std::string> texts;
  for (const std::string& word : words_of(sql)) {
    for (std::string& name : catalog_.column_names(word)) {
      if (std::find(texts.begin(), texts.end(), name) == texts.end()) texts.push_back(std::move(name));
    }
  }
  const std::vector<std::string_view> known(texts.begin(), texts.end());
  Error error = unknown_name("column", wanted, known);
  error.message = place + error.message;
  return error;
}

Error Connection::error_of(int code) {
  switch (code) {
    case SQLITE_AUTH:
      return usage("only SELECT is allowed here" + (refused_.empty() ? "" : "; refused: " + refused_),
                   "Ask with a select; the traces are never changed");
    case SQLITE_INTERRUPT: return out_of_time(limits_);
    case SQLITE_NOMEM: return out_of_memory(limits_);
    case SQLITE_TOOBIG:
      return {ErrorKind::too_large, "a value of the query is longer than 64 MiB", "", std::nullopt,
              "Shorten it with substr()"};
    default: return usage(db_ == nullptr ? "SQLite failed" : sqlite3_errmsg(db_));
  }
}

Result<bool> Connection::step(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(error_of(code & 0xff));
}

}  // namespace stepscope::query
