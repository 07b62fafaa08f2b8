#include "read/rocprof_json/records.h"

#include <algorithm>
#include <array>

namespace stepscope::read::rocprof {
namespace {

static_assert(formats::JsonStream::kPadding >= simdjson::SIMDJSON_PADDING);

// The tool writes counters that have no value as NaN and Infinity, which JSON does not know.
std::string without_nan(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kWords{"-Infinity", "Infinity", "-NaN", "NaN",
                                                          "-nan",      "nan",      "-inf", "inf"};
  std::string out;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view step = text.substr(at, in_string && text[at] == '\\' ? 2 : 1);
    if (step == "\"") in_string = !in_string;
    const auto word = std::find_if(kWords.begin(), kWords.end(),
                                   [&](std::string_view each) { return text.substr(at).starts_with(each); });
    const bool is_word = !in_string && word != kWords.end();
    if (is_word) step = *word;
    out += is_word ? "null" : step;
    at += step.size();
  }
  return out;
}

}  // namespace

void Records::one(TraceRows& rows, const Take& take) {
  const std::uint64_t place = in_.offset();
  const std::string_view text = in_.value();
  if (text.empty()) {
    if (in_.end() == formats::JsonStream::End::open) {
      rows.note("record_too_large", Severity::lost, "records of more than 64 MiB were left out", "", place);
    }
    return;
  }
  Record record;
  simdjson::error_code error = parser_.parse(text.data(), text.size(), false).get(record);
  if (error != simdjson::SUCCESS) {
    repaired_ = without_nan(text);
    error = parser_.parse(repaired_).get(record);
  }
  if (error == simdjson::SUCCESS && record.is_object()) {
    take(record, place);
    return;
  }
  rows.note("broken_record", Severity::lost, "records that could not be understood were left out",
            "Look at the file around that byte", place);
}

void Records::each(TraceRows& rows, const Take& take) {
  if (!in_.enter_array()) {
    rows.note("table_without_list", Severity::lost, "tables that are no lists were left out", "", in_.offset());
    in_.skip();
    return;
  }
  while (in_.next_element()) one(rows, take);
}

std::uint64_t Records::count() {
  std::uint64_t count = 0;
  if (!in_.enter_array()) {
    in_.skip();
    return 0;
  }
  for (; in_.next_element(); count++) in_.skip();
  return count;
}

}  // namespace stepscope::read::rocprof
