// Capture as the hooks read it: words KEY=VALUE with blanks between, so no value may hold one.
#include "collect/capture.h"

#include <charconv>
#include <cstdio>

namespace stepscope::collect {
namespace {

// Shortest decimal text without an exponent that reads back as the same number.
std::string plain(double value) {
  char text[400];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
  return error == std::errc() ? std::string(text, end) : "0";
}

std::string short_share(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);  // 0.7 % is 0.007 here, not 0.006999…
  return text;
}

// As in an address of the web: no blank, and nothing but ASCII, whatever a name of a file holds.
std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::string to_text(const MemoryHistory& history) {
  std::string out = " memory_history=" + std::to_string(history.entries) + ":" + std::to_string(history.every) +
                    " memory_ranks=" + history.ranks;
  if (!history.path.empty()) out += " memory_path=" + percent_encoded(history.path);
  return out;
}

}  // namespace

std::string to_text(const std::vector<Window>& windows) {
  std::string out;
  for (const Window& w : windows) {
    out += (out.empty() ? "" : ",") + std::to_string(w.first) + ":" + std::to_string(w.end);
  }
  return out;
}

std::string to_text(const Parts& parts) {
  std::string out;
  const auto add = [&](bool is_in, const char* name) {
    if (is_in) out += (out.empty() ? "" : ",") + std::string(name);
  };
  add(parts.shapes, "shapes");
  add(parts.memory, "memory");
  add(parts.modules, "modules");
  add(parts.stack, "stack");
  add(parts.flops, "flops");
  add(parts.execution_trace, "execution-trace");
  return out;
}

std::string to_text(const Capture& capture) {
  std::string out;
  if (capture.on_request) out += " steps=none";
  if (!capture.steps.empty()) out += " steps=" + to_text(capture.steps);
  if (const auto& c = capture.cycle) {
    out += " cycle=" + std::to_string(c->first) + ":" + std::to_string(c->active) + ":" + std::to_string(c->period) +
           ":" + std::to_string(c->repeat);
  }
  if (capture.seconds) out += " seconds=" + plain(capture.seconds->start) + ":" + plain(capture.seconds->end);
  out += " ranks=" + capture.ranks + " with=" + to_text(capture.with);
  if (capture.budget.share) out += " budget=" + short_share(*capture.budget.share);
  if (capture.budget.bytes) out += " budget_bytes=" + std::to_string(*capture.budget.bytes);
  if (capture.memory_history) out += to_text(*capture.memory_history);
  if (capture.memory_steps > 0) out += " memory_state=" + std::to_string(capture.memory_steps);
  if (capture.nsys) out += " nsys=on";
  return out.substr(1);
}

}  // namespace stepscope::collect
