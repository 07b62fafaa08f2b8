// Texts and numbers of JSON from anything: unescaped text is valid UTF-8, clean text stays as it is, scanners stay in
// their text, and numbers agree with simdjson where it takes them.
#include <simdjson.h>

#include <cmath>
#include <cstring>
#include <string>

#include "formats/json_text.h"
#include "formats/number_text.h"
#include "trace_input.h"

using namespace stepscope;

namespace {

void check_numbers(std::string_view text) {
  if (text.empty() || text.size() > 64) return;
  std::string padded(text);
  padded.append(64, ' ');
  const char *begin = padded.data(), *end = begin + text.size();
  std::int64_t whole = 0, ns = 0;
  double real = 0;
  const bool is_int = formats::parse_int(begin, end, whole);
  const bool is_real = formats::parse_real(begin, end, real);
  const bool is_time = formats::parse_us_as_ns(begin, end, ns);
  if (is_time && is_real)
    fuzz::must(std::fabs(static_cast<double>(ns) - real * 1000) <= 1 + std::fabs(real) * 1e-9, "time");
  static simdjson::dom::parser parser;
  simdjson::dom::element value;
  if (parser.parse(simdjson::padded_string(text)).get(value) != simdjson::SUCCESS) return;
  std::int64_t expected_int = 0;
  double expected_real = 0;
  if (value.is_int64() && value.get(expected_int) == simdjson::SUCCESS) {
    fuzz::must(is_int || text.front() == ' ' || text.back() <= ' ' || text.front() < '-' || expected_int == INT64_MIN,
               "integer taken");
    if (is_int) fuzz::must(whole == expected_int, "integer");
  }
  if (is_real && value.is_double() && value.get(expected_real) == simdjson::SUCCESS) {
    fuzz::must(real == expected_real, "real");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  bool repaired = false;
  const std::string text = formats::unescape(raw, repaired);
  fuzz::must(simdjson::validate_utf8(text), "valid UTF-8");
  if (formats::is_clean(raw)) fuzz::must(text == raw && !repaired, "clean text stays");
  fuzz::must(text.size() <= 4 * raw.size(), "text does not grow beyond \\xNN");
  const std::size_t end = formats::skip_value(raw, 0);
  fuzz::must(end == std::string_view::npos || end <= size, "in the text");
  if (size > 0) {
    std::size_t used = 0;
    for (const auto& member : formats::members(raw, &used)) {
      fuzz::must(member.value.data() >= raw.data() && member.value.data() + member.value.size() <= raw.data() + size,
                 "values");
      (void)formats::value_text(member.value);
      (void)formats::value_int(member.value, 0);
    }
    fuzz::must(used <= size + 1, "used");
  }
  check_numbers(raw);
  return 0;
}
