#include "report/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/utf8.h"

namespace stepscope::report {

JsonWriter& JsonWriter::open(char bracket, Layout layout) {
  before_value();
  out_ += bracket;
  if (!levels_.empty() && levels_.back().layout == Layout::line) layout = Layout::line;
  levels_.push_back({layout});
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.layout == Layout::lines && !level.empty) new_line();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  before_value();
  append_quoted(value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  fmt::format_to(std::back_inserter(out_), "{}", value);  // the shortest text that reads back as the same number
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
  } else {
    separate();
  }
}

void JsonWriter::separate() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.layout == Layout::lines) {
    if (!level.empty) out_ += ',';
    new_line();
  } else if (!level.empty) {
    out_ += ", ";
  }
  level.empty = false;
}

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(levels_.size() * 2, ' ');
}

void JsonWriter::append_quoted(std::string_view value) {
  out_ += '"';
  for (std::size_t at = 0; at < value.size();) {
    const auto byte = static_cast<unsigned char>(value[at]);
    if (byte >= 0x80) {
      const CodePoint point = decode_at(value, at);
      append_utf8(out_, point.value);
      at += point.bytes;
      continue;
    }
    at++;
    switch (byte) {
      case '"': out_ += "\\\""; break;
      case '\\': out_ += "\\\\"; break;
      case '\n': out_ += "\\n"; break;
      case '\t': out_ += "\\t"; break;
      case '\r': out_ += "\\r"; break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          fmt::format_to(std::back_inserter(out_), "\\u{:04x}", byte);
        } else {
          out_ += static_cast<char>(byte);
        }
    }
  }
  out_ += '"';
}

JsonWriter& JsonWriter::value(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return number(*whole);
  if (const auto* real = std::get_if<double>(&value)) return number(*real);
  if (const auto* words = std::get_if<std::string>(&value)) return text(*words);
  if (const auto* truth = std::get_if<bool>(&value)) return boolean(*truth);
  return null();
}

}  // namespace stepscope::report
