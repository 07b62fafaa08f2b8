// JsonWriter: JSON text by appending, for everything that stepscope writes as JSON.
//
// Commas and nesting are kept here; the caller pairs begin and end and gives a key before each value of an object.
// The result is valid JSON in valid UTF-8 whatever the strings hold: invalid bytes become U+FFFD, control bytes are
// escaped, NaN and infinities become null. The same calls give the same bytes. Objects and arrays are laid out one
// member a line unless opened as `Layout::line`, so that a table row is one line and two reports can be compared by
// eye.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/answer.h"

namespace stepscope::report {

class JsonWriter {
 public:
  enum class Layout : std::uint8_t { lines, line };

  JsonWriter& begin_object(Layout layout = Layout::lines) { return open('{', layout); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array(Layout layout = Layout::lines) { return open('[', layout); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& number(double value);
  template <std::signed_integral T>
  JsonWriter& number(T value) {
    return raw(std::to_string(value));
  }
  template <std::unsigned_integral T>
  JsonWriter& number(T value) {
    return raw(std::to_string(value));
  }
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(const Value& value);
  // `json` must be one JSON value.
  JsonWriter& raw(std::string_view json);

  std::string take() { return std::move(out_); }

 private:
  struct Level {
    Layout layout;
    bool empty = true;
  };
  JsonWriter& open(char bracket, Layout layout);
  JsonWriter& close(char bracket);
  void before_value();
  void separate();
  void new_line();
  void append_quoted(std::string_view value);

  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace stepscope::report
