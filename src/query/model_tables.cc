// The tables of the model as virtual tables of SQLite.
//
// best_index hands us the comparisons with constants and with columns of other tables (a join); filter gets their
// values. What we filter only saves SQLite work: it compares again what it gets, so a comparison that we do not
// understand is dropped. The plan travels in idxStr: pairs of column and Compare, one a comparison.
#include <algorithm>
#include <cmath>
#include <map>
#include <new>

#include "query/row_index.h"
#include "query/virtual_tables.h"

namespace stepscope::query {
namespace {

using tables::ColumnReader;
using tables::Order;

struct Module {
  ModelTable table;
  const Run* run;
  const Deadline* deadline;
};

// An index is worth it once one column is looked up again and again, which a single comparison with a constant is not.
constexpr int kLookupsBeforeIndex = 3;

struct Lookup {
  int asked = 0;
  std::unique_ptr<RowIndex> index;
};

struct ModelVtab : sqlite3_vtab {
  const Module* module;
  TableReaders readers;
  std::map<std::size_t, Lookup> lookups;  // by column

  explicit ModelVtab(const Module* from) : sqlite3_vtab{}, module(from), readers(*from->table.spec, *from->run) {}
};

struct ModelCursor : sqlite3_vtab_cursor {
  std::optional<Scan> scan;
  std::size_t at = 0;  // in scan->rows()
  const RowIndex* index = nullptr;
  std::uint32_t indexed = RowIndex::kEnd;
  RowPlace place;
  bool end = true;
};

ModelVtab& table_of(sqlite3_vtab* vtab) { return *static_cast<ModelVtab*>(vtab); }
ModelCursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *static_cast<ModelCursor*>(cursor); }

int connect(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* module = static_cast<const Module*>(aux);
  const int code = sqlite3_declare_vtab(db, declaration(describe(module->table)).c_str());
  if (code != SQLITE_OK) return code;
  *out = new (std::nothrow) ModelVtab(module);
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int disconnect(sqlite3_vtab* vtab) {
  delete &table_of(vtab);
  return SQLITE_OK;
}

std::optional<Compare> compare_of(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return Compare::equal;
    case SQLITE_INDEX_CONSTRAINT_NE: return Compare::not_equal;
    case SQLITE_INDEX_CONSTRAINT_LT: return Compare::less;
    case SQLITE_INDEX_CONSTRAINT_LE: return Compare::at_most;
    case SQLITE_INDEX_CONSTRAINT_GT: return Compare::more;
    case SQLITE_INDEX_CONSTRAINT_GE: return Compare::at_least;
    case SQLITE_INDEX_CONSTRAINT_LIKE: return Compare::like;
    case SQLITE_INDEX_CONSTRAINT_GLOB: return Compare::glob;
    case SQLITE_INDEX_CONSTRAINT_ISNULL: return Compare::is_null;
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL: return Compare::not_null;
    default: return std::nullopt;
  }
}

// What SQLite should expect of a plan; it chooses the order of a join by that.
struct Estimate {
  double rows = 0;
  bool one_trace = false, by_row = false, by_order = false, by_value = false;

  double found() const {
    if (by_row) return 1;
    if (by_order) return 2;
    if (by_value) return std::min(rows, 10.0);
    return rows;
  }
};

void count_in(Estimate& estimate, Compare compare, Order order) {
  if (compare == Compare::equal) {
    estimate.one_trace |= order == Order::constant;
    estimate.by_row |= order == Order::row_number;
    estimate.by_order |= order == Order::ascending;
    estimate.by_value |= order == Order::none;
  } else {
    estimate.rows = std::max(1.0, estimate.rows / 2);
  }
}

int best_index(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  const ModelVtab& table = table_of(vtab);
  const auto& columns = table.readers.spec().columns;
  Estimate estimate;
  for (std::size_t trace = 0; trace < table.readers.traces(); trace++) {
    estimate.rows += static_cast<double>(table.readers.rows(trace));
  }
  std::string plan;
  int arguments = 0;
  for (int i = 0; i < info->nConstraint; i++) {
    const auto& constraint = info->aConstraint[i];
    const auto compare = compare_of(constraint.op);
    if (!constraint.usable || !compare || constraint.iColumn < 0) continue;
    if (sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0) continue;
    const auto column = static_cast<std::size_t>(constraint.iColumn);
    info->aConstraintUsage[i].argvIndex = ++arguments;
    plan += std::to_string(column) + "," + std::to_string(static_cast<int>(*compare)) + ";";
    count_in(estimate, *compare, columns[column].order);
  }
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, estimate.found()));
  info->estimatedCost = std::max(1.0, estimate.found()) + (estimate.by_value && !estimate.by_row ? 5 : 1);
  if (estimate.by_row && estimate.one_trace) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new (std::nothrow) ModelCursor();
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete &cursor_of(cursor);
  return SQLITE_OK;
}

// nullopt: a value of a kind that we do not compare.
std::optional<Constant> constant_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER: return Constant(std::int64_t{sqlite3_value_int64(value)});
    case SQLITE_FLOAT: return Constant(sqlite3_value_double(value));
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
      return Constant(std::string(text, static_cast<std::size_t>(sqlite3_value_bytes(value))));
    }
    default: return std::nullopt;
  }
}

std::vector<Predicate> predicates_of(const ModelVtab& table, const char* plan, int count, sqlite3_value** values) {
  std::vector<Predicate> predicates = table.module->table.only;
  for (int i = 0; i < count; i++) {
    char* rest = nullptr;
    const std::size_t column = std::strtoul(plan, &rest, 10);
    const auto compare = static_cast<Compare>(std::strtoul(rest + 1, &rest, 10));
    plan = rest + 1;
    Predicate predicate{column, compare, {}};
    if (compare != Compare::is_null && compare != Compare::not_null) {
      auto constant = constant_of(values[i]);
      if (!constant) continue;
      predicate.constants.push_back(*std::move(constant));
    }
    if (supported(tables::value_type(table.readers.spec().columns[column]), predicate)) {
      predicates.push_back(std::move(predicate));
    }
  }
  return predicates;
}

// The index that answers one of the predicates, where the scan could not do without reading all rows.
const Predicate* index_choice(const ModelVtab& table, const std::vector<Predicate>& predicates) {
  const Predicate* choice = nullptr;
  for (const Predicate& predicate : predicates) {
    if (predicate.compare != Compare::equal ||
        &predicate - predicates.data() < static_cast<std::ptrdiff_t>(table.module->table.only.size()))
      continue;
    const auto& column = table.readers.spec().columns[predicate.column];
    if (column.order == Order::row_number || column.order == Order::ascending) return nullptr;
    if (column.order == Order::none && tables::value_type(column) != ValueType::real) choice = &predicate;
  }
  return choice;
}

// Is the row one of those that the table selects for good (its kind is "kernel")?
bool belongs(ModelVtab& table, RowPlace place) {
  const auto& only = table.module->table.only;
  return std::all_of(only.begin(), only.end(), [&](const Predicate& predicate) {
    const ColumnReader& reader = table.readers.column(place.trace, predicate.column);
    return reader.value(place.row) == Value(std::get<std::string>(predicate.constants[0]));
  });
}

// Moves on to a row that is there; false when the time is over.
bool settle(ModelVtab& table, ModelCursor& cursor) {
  if (cursor.index != nullptr) {
    for (; cursor.indexed != RowIndex::kEnd; cursor.indexed = cursor.index->after(cursor.indexed)) {
      cursor.place = cursor.index->place(cursor.indexed);
      if (belongs(table, cursor.place)) break;
    }
    cursor.end = cursor.indexed == RowIndex::kEnd;
    return true;
  }
  if (cursor.at == cursor.scan->rows().size()) {
    if (table.module->deadline->passed()) return false;
    cursor.at = 0;
    cursor.end = !cursor.scan->next();
    if (cursor.end) return true;
  }
  cursor.place = {static_cast<std::uint32_t>(cursor.scan->trace()), cursor.scan->rows()[cursor.at]};
  return true;
}

int filter(sqlite3_vtab_cursor* base, int, const char* plan, int count, sqlite3_value** values) try {
  ModelVtab& table = table_of(base->pVtab);
  ModelCursor& cursor = cursor_of(base);
  std::vector<Predicate> predicates = predicates_of(table, plan, count, values);
  cursor.index = nullptr;
  cursor.end = false;
  if (const Predicate* by = index_choice(table, predicates); by != nullptr) {
    Lookup& lookup = table.lookups[by->column];
    if (++lookup.asked >= kLookupsBeforeIndex) {
      if (!lookup.index) lookup.index = std::make_unique<RowIndex>(table.readers, by->column);
      cursor.index = lookup.index.get();
      cursor.indexed = cursor.index->first(by->constants[0]);
      return settle(table, cursor) ? SQLITE_OK : SQLITE_INTERRUPT;
    }
  }
  cursor.at = 0;
  cursor.scan.emplace(table.readers, std::move(predicates));
  return settle(table, cursor) ? SQLITE_OK : SQLITE_INTERRUPT;
} catch (const std::bad_alloc&) {
  return SQLITE_NOMEM;
}

int next_row(sqlite3_vtab_cursor* base) try {
  ModelCursor& cursor = cursor_of(base);
  if (cursor.index != nullptr) {
    cursor.indexed = cursor.index->after(cursor.indexed);
  } else {
    cursor.at++;
  }
  return settle(table_of(base->pVtab), cursor) ? SQLITE_OK : SQLITE_INTERRUPT;
} catch (const std::bad_alloc&) {
  return SQLITE_NOMEM;
}

int at_end(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).end ? 1 : 0; }

// Texts lie in the run, which outlives the connection: they are not copied.
int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int which) try {
  const RowPlace place = cursor_of(base).place;
  const ColumnReader& reader = table_of(base->pVtab).readers.column(place.trace, static_cast<std::size_t>(which));
  if (reader.type() == ValueType::text) {
    const std::uint32_t code = reader.code(place.row);
    if (code == tables::kNoCode || code >= reader.code_count()) return SQLITE_OK;  // null
    const std::string_view text = reader.text(code);
    sqlite3_result_text64(context, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  } else if (reader.type() == ValueType::real) {
    sqlite3_result_double(context, reader.real(place.row));  // NaN is null to SQLite
  } else if (const std::int64_t value = reader.integer(place.row); value != kAbsent) {
    sqlite3_result_int64(context, value);
  }
  return SQLITE_OK;
} catch (const std::bad_alloc&) {
  return SQLITE_NOMEM;
}

int row_number(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  const RowPlace place = cursor_of(base).place;
  *out = (std::int64_t{place.trace} << 32) + place.row;
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module{};
  module.xConnect = connect;  // without xCreate: there under its own name, and no statement can make another
  module.xDisconnect = disconnect;
  module.xBestIndex = best_index;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next_row;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_number;
  return module;
}

}  // namespace

int add_model_table(sqlite3* db, const ModelTable& table, const Run& run, const Deadline& deadline) {
  static const sqlite3_module module = make_module();
  return sqlite3_create_module_v2(db, table.name.c_str(), &module, new Module{table, &run, &deadline},
                                  [](void* aux) { delete static_cast<Module*>(aux); });
}

}  // namespace stepscope::query
