#include "read/nsys_sqlite/export.h"

#include <algorithm>
#include <numeric>

namespace stepscope::read::nsys {

Result<Export> Export::open(const std::string& path) {
  Result<formats::SqliteFile> file = formats::SqliteFile::open(path);
  if (!file) return fail(file.error());
  Export out;
  out.file_ = *std::move(file);
  const auto tables = out.file_.tables();
  if (!tables) return fail(tables.error());
  out.tables_ = *tables;
  if (out.file_.leftovers().wal) {
    out.issues.push_back({"wal_read", Severity::info,
                          "a write-ahead log lies beside the database; what it holds was read too",
                          "Let its writer end, if it still runs", 1, path, std::nullopt, std::nullopt});
  }
  if (out.file_.leftovers().journal) {
    out.issues.push_back({"journal_left", Severity::lost,
                          "a rollback journal lies beside the database: its last change was never finished, so rows "
                          "may be missing or doubled",
                          "Export the report again", 1, path, std::nullopt, std::nullopt});
  }
  out.load_strings();
  return out;
}

bool Export::has(std::string_view table) const {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

// Whatever was recorded, an export holds its strings or says what made it, and one table of events at least.
bool Export::is_nsys() const {
  if (has("META_DATA_EXPORT") || has("EXPORT_META_DATA")) return true;
  return has("StringIds") && std::any_of(kTableNames.begin(), kTableNames.end(), [&](auto name) { return has(name); });
}

void Export::load_strings() {
  Scan rows(*this, "StringIds", {"id", "value"}, 2);
  while (rows.next()) {
    ids_.push_back(rows[0]);
    texts_.emplace_back(rows.text(1));
  }
  if (std::is_sorted(ids_.begin(), ids_.end())) return;
  std::vector<std::size_t> order(ids_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ids_[a] < ids_[b]; });
  std::vector<std::int64_t> ids;
  std::vector<std::string> texts;
  for (const std::size_t at : order) {
    ids.push_back(ids_[at]);
    texts.push_back(std::move(texts_[at]));
  }
  ids_ = std::move(ids);
  texts_ = std::move(texts);
}

std::size_t Export::string_index(std::int64_t id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? static_cast<std::size_t>(found - ids_.begin()) : std::string::npos;
}

std::string_view Export::string(std::int64_t id) const {
  const std::size_t index = string_index(id);
  return index == std::string::npos ? std::string_view() : texts_[index];
}

std::map<std::int64_t, std::string> Export::names(std::string_view table, std::string_view value) const {
  std::map<std::int64_t, std::string> out;
  const auto columns = file_.columns(table);
  if (std::find(columns.begin(), columns.end(), value) == columns.end()) return out;
  auto rows = file_.query("SELECT id, " + formats::quoted(value) + " FROM " + formats::quoted(table));
  while (rows && rows->next()) out[rows->integer(0)] = rows->text(1);
  return out;
}

void Export::note_broken(std::string_view table, std::uint64_t rows, const std::string& why) {
  issues.push_back({"broken_table", Severity::lost,
                    "table " + std::string(table) + " is damaged (" + why + "): only its first " +
                        std::to_string(rows) + " rows could be read",
                    "Export the report again", 1, file_.path(), std::nullopt, std::nullopt});
}

Scan::Scan(Export& file, std::string_view table, std::initializer_list<std::string_view> columns, std::size_t needed)
    : file_(file), table_(table) {
  if (!file.has(table)) return;
  const std::vector<std::string> there = file.file().columns(table);
  const auto known = [&](std::string_view name) { return std::find(there.begin(), there.end(), name) != there.end(); };
  std::string select;
  for (const std::string_view column : columns) {
    if (!known(column) && needed > 0) {
      file.issues.push_back(
          {"unknown_table_form", Severity::lost,
           "table " + std::string(table) + " has no column " + std::string(column) + ", so it could not be read",
           "Export the report again with a current nsys", 1, file.file().path(), std::nullopt, std::nullopt});
      return;
    }
    if (needed > 0) needed--;
    select += known(column) ? ", " + formats::quoted(column) : ", NULL";
  }
  const std::string from = select + " FROM " + formats::quoted(table);
  Result<formats::SqliteRows> rows = file.file().query("SELECT rowid" + from);
  if (!rows) {
    row_ids_ = false;
    rows = file.file().query("SELECT 0" + from);
  }
  if (rows) {
    rows_ = *std::move(rows);
  } else {
    file.note_broken(table, 0, rows.error().message);
  }
}

bool Scan::next() {
  if (!rows_) return false;
  if (rows_->next()) {
    count_++;
    return true;
  }
  if (rows_->failure()) file_.note_broken(table_, count_, *rows_->failure());
  rows_.reset();
  return false;
}

}  // namespace stepscope::read::nsys
