#include "capi/opened.h"

#include <algorithm>

#include "base/did_you_mean.h"
#include "report/json_writer.h"
#include "session/session.h"
#include "tables/small_tables.h"

namespace stepscope::capi {
namespace {

using namespace tables;
using report::JsonWriter;
constexpr std::string_view kAnswers = "answers.";
constexpr std::string_view kSeries = "series.";

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const TableSpec& spec : model_tables()) names.push_back(spec.name);
  for (const SmallTable& table : small_tables()) names.push_back(table.name);
  names.push_back("answers.NAME.TABLE");
  return names;
}

Error unknown_table(const Answer& answer, std::string_view wanted) {
  std::vector<std::string> texts;
  for (const Table& table : answer.tables) texts.push_back(table.name);
  for (const Series& series : answer.series) texts.push_back(std::string(kSeries) + series.name);
  const std::vector<std::string_view> names(texts.begin(), texts.end());
  return unknown_name("table of the answer " + answer.name, wanted, names);
}

// "answers.ANSWER.TABLE" and "answers.ANSWER.series.SERIES".
Result<TableSource> answer_table(Opened& opened, std::string_view name) {
  const std::string_view rest = name.substr(kAnswers.size());
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  auto answer = opened.answer(std::string(rest.substr(0, dot)));
  if (!answer) return fail(answer.error());
  const std::string_view wanted = rest.substr(std::min(dot + 1, rest.size()));
  if (const Table* table = (*answer)->table(wanted)) {
    return value_source(std::string(name), (*answer)->summary, std::shared_ptr<const Table>(*answer, table));
  }
  for (const Series& series : (*answer)->series) {
    if (wanted.substr(0, kSeries.size()) != kSeries || wanted.substr(kSeries.size()) != series.name) continue;
    return series_source(std::string(name), std::shared_ptr<const Series>(*answer, &series));
  }
  return fail(unknown_table(**answer, wanted));
}

struct ColumnLine {
  std::string_view name;
  ValueType type;
  Unit unit;
  std::string_view meaning;
};

void write_table(JsonWriter& json, std::string_view name, std::string_view meaning, std::size_t rows,
                 const std::vector<ColumnLine>& columns) {
  json.begin_object(JsonWriter::Layout::line);
  json.key("name").text(name).key("meaning").text(meaning).key("rows").number(rows);
  json.key("columns").begin_array();
  for (const ColumnLine& column : columns) {
    json.begin_object().key("name").text(column.name).key("type").text(to_string(column.type));
    json.key("unit").text(to_string(column.unit)).key("meaning").text(column.meaning).end_object();
  }
  json.end_array().end_object();
}

void write_values(JsonWriter& json, std::string_view name, std::string_view meaning, const Table& table) {
  std::vector<ColumnLine> columns;
  for (const TableColumn& c : table.columns) columns.push_back({c.name, c.type, c.unit, c.meaning});
  write_table(json, name, meaning, table.rows.size(), columns);
}

void write_model(JsonWriter& json, const TableSpec& spec, const Run& run) {
  std::size_t rows = 0;
  for (const Trace& trace : run.*spec.traces) rows += spec.rows(trace);
  std::vector<ColumnLine> columns;
  for (const ColumnSpec& c : spec.columns) columns.push_back({c.name, value_type(c), c.unit, c.meaning});
  write_table(json, spec.name, spec.meaning, rows, columns);
}

void write_answer(JsonWriter& json, const Answer& answer) {
  const std::string prefix = std::string(kAnswers) + answer.name + ".";
  for (const Table& table : answer.tables) write_values(json, prefix + table.name, answer.summary, table);
  for (const Series& series : answer.series) {
    write_table(json, prefix + std::string(kSeries) + series.name, answer.summary, series.t_ns.size(),
                {{"t_ns", ValueType::integer, Unit::ns, "Time of the value."},
                 {"v", ValueType::real, series.unit, "The value; null where unknown."}});
  }
}

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::unreadable: return "unreadable";
    case ErrorKind::unrecognized: return "unrecognized";
    case ErrorKind::malformed: return "malformed";
    case ErrorKind::too_large: return "too_large";
    case ErrorKind::changed: return "changed";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::usage: return "usage";
    case ErrorKind::internal: return "internal";
  }
  return "internal";
}

}  // namespace

Result<std::shared_ptr<const Answer>> Opened::answer(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = answers_.find(name); known != answers_.end()) return known->second;
  auto answer = session::one_answer(run_, name);
  if (!answer) return fail(answer.error());
  auto made = std::make_shared<const Answer>(*std::move(answer));
  answers_.emplace(name, made);
  return made;
}

Result<QueryResult> Opened::query(const std::string& sql, const query::Limits& limits) {
  const std::pair key(sql, limits.rows);
  {
    const std::lock_guard lock(queries_mutex_);
    std::erase_if(queries_, [](const auto& entry) { return entry.second.table.expired(); });
    if (const auto known = queries_.find(key); known != queries_.end()) {
      if (auto table = known->second.table.lock()) return QueryResult{std::move(table), known->second.cut};
    }
  }
  const query::Source source{&run_, session::answer_names(), [this](const std::string& name) { return answer(name); }};
  query::TableSink sink;
  const auto outcome = query::run_query(source, sql, limits, sink);
  if (!outcome) return fail(outcome.error());
  QueryResult result{std::make_shared<const Table>(sink.take()), outcome->cut};
  const std::lock_guard lock(queries_mutex_);
  queries_[key] = {result.table, result.cut};
  return result;
}

Result<TableSource> find_table(const std::shared_ptr<Opened>& opened, std::string_view name) {
  if (name.substr(0, kAnswers.size()) == kAnswers) return answer_table(*opened, name);
  const std::shared_ptr<const Run> run(opened, &opened->run());
  for (const TableSpec& spec : model_tables()) {
    if (spec.name == name) return model_source(spec, run);
  }
  for (const SmallTable& small : small_tables()) {
    if (small.name != name) continue;
    auto table = std::make_shared<const Table>(small.make(*run));
    return value_source(std::string(name), std::string(small.meaning), std::move(table));
  }
  return fail(unknown_name("table", name, model_names()));
}

Result<std::string> list_tables(Opened& opened, bool with_answers) {
  JsonWriter json;
  json.begin_array();
  for (const TableSpec& spec : model_tables()) write_model(json, spec, opened.run());
  for (const SmallTable& small : small_tables()) {
    write_values(json, small.name, small.meaning, small.make(opened.run()));
  }
  if (with_answers) {
    for (const std::string_view name : session::answer_names()) {
      // An answer that cannot be made has no tables; why, the report says.
      if (const auto answer = opened.answer(std::string(name))) write_answer(json, **answer);
    }
  }
  json.end_array();
  return json.take();
}

std::string error_json(const Error& error) {
  JsonWriter json;
  const auto optional = [&](std::string_view key, const std::string& text) {
    json.key(key);
    if (text.empty()) {
      json.null();
    } else {
      json.text(text);
    }
  };
  json.begin_object(JsonWriter::Layout::line).key("kind").text(kind_name(error.kind));
  json.key("message").text(error.message);
  optional("file", error.file);
  json.key("offset");
  if (error.offset) {
    json.number(*error.offset);
  } else {
    json.null();
  }
  optional("hint", error.hint);
  json.end_object();
  return json.take();
}

}  // namespace stepscope::capi
