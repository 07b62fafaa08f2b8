// What the tests of this room share: asking a run in SQL and looking at the rows as one text.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "query/query.h"

namespace stepscope::query {

inline std::string text_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.12g}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return "null";
}

struct TextSink : RowSink {
  std::string text;
  void columns(std::span<const std::string> names) override {
    for (const std::string& name : names) text += name + "|";
    text += "\n";
  }
  bool row(std::span<const Value> cells) override {
    for (const Value& cell : cells) text += text_of(cell) + "|";
    text += "\n";
    return true;
  }
};

struct Asked {
  std::string text;  // names, then rows; of an error what is told
  bool shortcut = false, failed = false, cut = false;
};

inline Source source_of(const Run& run) { return {&run, {}, {}}; }

inline Asked ask(const Source& source, const std::string& sql, const Limits& limits = {}) {
  TextSink sink;
  const auto outcome = run_query(source, sql, limits, sink);
  if (!outcome) return {to_text(outcome.error()), false, true, false};
  return {sink.text, outcome->shortcut, false, outcome->cut};
}

// The rows alone.
inline std::string rows(const Run& run, const std::string& sql) {
  const Asked asked = ask(source_of(run), sql);
  REQUIRE_MESSAGE(!asked.failed, asked.text);
  return asked.text.substr(asked.text.find('\n') + 1);
}

}  // namespace stepscope::query
