// The report as one JSON object; docs/report-json.md is its specification.
#include "base/version.h"
#include "report/json_parts.h"
#include "report/report.h"

namespace stepscope::report {
namespace {

using Layout = JsonWriter::Layout;

void write_text_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.text(text);
  }
}

template <class T>
void write_optional(JsonWriter& json, std::string_view name, const std::optional<T>& value) {
  json.key(name);
  if (!value) {
    json.null();
  } else if constexpr (std::is_same_v<T, std::string>) {
    json.text(*value);
  } else {
    json.number(*value);
  }
}

void write_input(JsonWriter& json, const Input& input) {
  json.begin_object(Layout::line);
  json.key("path").text(input.path);
  write_text_or_null(json, "format", input.format);
  write_text_or_null(json, "writer", input.writer);
  json.key("rank").number(input.rank);
  json.key("world_size");
  if (input.world_size > 0) {
    json.number(input.world_size);
  } else {
    json.null();
  }
  write_text_or_null(json, "rank_source", input.rank_source);
  json.key("compressed").boolean(input.compressed).key("cached").boolean(input.cached);
  json.key("file_bytes").number(input.file_bytes).key("text_bytes").number(input.text_bytes);
  json.key("events").number(input.events).key("slices").number(input.slices).end_object();
}

void write_issue(JsonWriter& json, const Issue& issue) {
  json.begin_object(Layout::line);
  json.key("code").text(issue.code).key("severity").text(to_string(issue.severity));
  json.key("sentence").text(issue.sentence);
  write_text_or_null(json, "advice", issue.advice);
  json.key("count").number(issue.count);
  write_text_or_null(json, "file", issue.file);
  write_optional(json, "offset", issue.offset);
  write_optional(json, "event", issue.event);
  json.end_object();
}

void add_label(JsonWriter& json, std::string_view label) {
  if (!label.empty()) json.key("label").text(label);
}

void write_table(JsonWriter& json, const Table& table) {
  json.key(table.name).begin_object().key("columns").begin_array();
  for (const auto& column : table.columns) {
    json.begin_object(Layout::line).key("name").text(column.name).key("type").text(to_string(column.type));
    json.key("unit").text(to_string(column.unit)).key("meaning").text(column.meaning);
    add_label(json, column.label);
    json.end_object();
  }
  json.end_array().key("rows").begin_array();
  for (const auto& row : table.rows) {
    json.begin_array(Layout::line);
    for (const auto& value : row) json.value(value);
    json.end_array();
  }
  json.end_array().end_object();
}

void write_series(JsonWriter& json, const Series& series) {
  json.key(series.name).begin_object().key("unit").text(to_string(series.unit)).key("t_ns").begin_array(Layout::line);
  for (const auto t_ns : series.t_ns) json.number(t_ns);
  json.end_array().key("v").begin_array(Layout::line);
  for (const auto v : series.v) json.number(v);
  json.end_array();
  if (!series.event.empty()) {
    json.key("event").begin_array(Layout::line);
    for (const auto event : series.event) json.number(event);
    json.end_array();
  }
  if (!series.metric.empty()) {
    json.key("metric").text(series.metric).key("target").text(series.target).key("suffix").text(series.suffix);
    json.key("ranks").begin_array(Layout::line);
    for (const auto rank : series.ranks) json.number(rank);
    json.end_array();
  }
  json.end_object();
}

// By column: a name for each member of each band would be most of the text.
void write_bands(JsonWriter& json, const Bands& of) {
  json.begin_object().key("name").text(of.name).key("rank").number(of.rank).key("start_ns").begin_array(Layout::line);
  for (const Band& band : of.bands) json.number(band.start_ns);
  json.end_array().key("end_ns").begin_array(Layout::line);
  for (const Band& band : of.bands) json.number(band.end_ns);
  json.end_array().key("label").begin_array(Layout::line);
  for (const Band& band : of.bands) json.text(band.label);
  json.end_array().key("share").begin_array(Layout::line);
  for (const Band& band : of.bands) json.number(band.share);
  json.end_array().end_object();
}

void write_place(JsonWriter& json, const Place& where) {
  json.key("where").begin_object(Layout::line);
  write_optional(json, "rank", where.rank);
  write_optional(json, "phase", where.phase);
  write_optional(json, "module", where.module);
  write_optional(json, "op", where.op);
  write_optional(json, "function", where.function);
  write_optional(json, "file", where.file);
  write_optional(json, "line", where.line);
  write_optional(json, "t_ns", where.t_ns);
  json.end_object();
}

}  // namespace

void write_json(JsonWriter& json, const Finding& finding) {
  json.begin_object().key("id").text(finding.id).key("cause").text(finding.cause);
  json.key("sentence").text(finding.sentence);
  write_place(json, finding.where);
  json.key("evidence").begin_array();
  for (const auto& evidence : finding.evidence) {
    json.begin_object(Layout::line).key("text").text(evidence.text).key("value");
    json.value(evidence.value);
    json.key("unit").text(to_string(evidence.unit));
    write_optional(json, "query", evidence.query);
    json.end_object();
  }
  json.end_array().key("gain");
  if (finding.gain) {
    json.begin_object(Layout::line).key("speedup_low").number(finding.gain->speedup_low);
    json.key("speedup_high").number(finding.gain->speedup_high);
    json.key("step_ns");
    json.value(finding.gain->step_ns > 0 ? Value(finding.gain->step_ns) : Value());
    write_text_or_null(json, "binds", finding.gain->binds);
    write_text_or_null(json, "how", finding.gain->how);
    json.end_object();
  } else {
    json.null();
  }
  write_text_or_null(json, "gain_reason", finding.gain_reason);
  write_optional(json, "confidence", finding.confidence);
  write_text_or_null(json, "confidence_reason", finding.confidence_reason);
  write_optional(json, "next", finding.next);
  json.end_object();
}

namespace {

void write_answer(JsonWriter& json, const Answer& answer) {
  json.key(answer.name).begin_object().key("summary").text(answer.summary);
  json.key("scalars").begin_object();
  for (const auto& scalar : answer.scalars) {
    json.key(scalar.name).begin_object(Layout::line).key("value");
    json.value(scalar.value);
    json.key("unit").text(to_string(scalar.unit)).key("meaning").text(scalar.meaning);
    add_label(json, scalar.label);
    json.end_object();
  }
  json.end_object().key("tables").begin_object();
  for (const auto& table : answer.tables) write_table(json, table);
  json.end_object().key("series").begin_object();
  for (const auto& series : answer.series) write_series(json, series);
  json.end_object();
  if (!answer.bands.empty()) {
    json.key("bands").begin_array();
    for (const auto& bands : answer.bands) write_bands(json, bands);
    json.end_array();
  }
  json.key("findings").begin_array();
  for (const auto& finding : answer.findings) write_json(json, finding);
  json.end_array().key("notes").begin_array();
  for (const auto& note : answer.notes) json.text(note);
  json.end_array().end_object();
}

}  // namespace

std::string to_json(const Report& report) {
  JsonWriter json;
  json.begin_object().key("schema_version").number(kSchemaVersion);
  json.key("stepscope").begin_object(Layout::line).key("version").text(version());
  json.key("commit").text(commit()).end_object();
  json.key("input").begin_object().key("path").text(report.path).key("files").begin_array();
  for (const auto& input : report.inputs) write_input(json, input);
  json.end_array().end_object().key("issues").begin_array();
  for (const auto& issue : report.issues) write_issue(json, issue);
  json.end_array().key("answers").begin_object();
  for (const auto& answer : report.answers) write_answer(json, answer);
  json.end_object();
  if (!report.by_worth.empty()) {
    json.key("findings_by_worth").begin_array(Layout::line);
    for (const auto at : report.by_worth) {
      json.begin_array(Layout::line).text(report.answers[at.answer].name).number(std::uint64_t{at.finding}).end_array();
    }
    json.end_array();
  }
  json.key("failed").begin_object();
  for (const auto& [name, reason] : report.failed) json.key(name).text(reason);
  json.end_object().end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::report
