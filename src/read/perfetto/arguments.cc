#include "read/perfetto/arguments.h"

#include <charconv>
#include <cmath>

#include "formats/json_text.h"
#include "run/json_text.h"

namespace stepscope::read::perfetto {
namespace {

constexpr int kDeepest = 16;  // a hostile file nests without end

std::string real_text(double value) {
  char text[32];
  if (!std::isfinite(value)) return "null";
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return {text, end};
}

std::string json_of(const Value& value, const Sequence& sequence, int depth) {
  bool ok = true;
  std::uint64_t unknown = 0;
  std::string out;
  const bool is_dict = value.kind == Value::Kind::dict;
  switch (value.kind) {
    case Value::Kind::none: return "null";
    case Value::Kind::boolean: return value.number != 0 ? "true" : "false";
    case Value::Kind::number: return std::to_string(value.number);
    case Value::Kind::natural: return std::to_string(static_cast<std::uint64_t>(value.number));
    case Value::Kind::real: return real_text(value.real);
    case Value::Kind::text:
    case Value::Kind::json: return run::json_string(value.text);  // nobody checked that it is JSON
    case Value::Kind::dict:
    case Value::Kind::list: break;
  }
  if (depth >= kDeepest) return "null";
  each_entry(value, sequence, ok, unknown, [&](const Value& entry) {
    if (!out.empty()) out += ", ";
    if (is_dict) out += run::json_string(entry.name) + ": ";
    out += json_of(entry, sequence, depth + 1);
  });
  return is_dict ? "{" + out + "}" : "[" + out + "]";
}

// The arguments as another file had them, which ours bring along as text.
bool is_recorded(const Value& value) {
  return value.name == "args" && value.kind == Value::Kind::json && value.text.starts_with('{') &&
         formats::skip_value(value.text, 0) == value.text.size();
}

std::string arguments_of(const Event& event, const Sequence& sequence) {
  bool ok = true;
  std::uint64_t unknown = 0;
  std::string args;
  for (const std::string_view annotation : event.annotations) {
    const Value value = read_value(annotation, sequence, ok, unknown);
    if (is_recorded(value)) return std::string(value.text);
    args += (args.empty() ? "" : ", ") + run::json_string(value.name) + ": " + json_of(value, sequence, 0);
  }
  return "{" + args + "}";
}

}  // namespace

std::string event_json(const Event& event, const Sequence& sequence) {
  std::string out = "{";
  if (event.name) out += "\"name\": " + run::json_string(*event.name) + ", ";
  if (event.has_category) out += "\"cat\": " + run::json_string(event.category) + ", ";
  return out + "\"args\": " + arguments_of(event, sequence) + "}";
}

}  // namespace stepscope::read::perfetto
