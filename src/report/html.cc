// The report as one page: the bundle of web/ and the report's own JSON, inline. The page asks the network for nothing;
// its policy (by hash) lets no other script or style run, so a hostile name in a trace stays a name.
//
// The JSON stands in a data element. There "<" is written as \u003c: it can occur inside JSON strings only, and without
// it no text can end the element or open a comment.
//
// What the script draws over stands in the body as plain HTML: a mail, a preview or a frame may refuse scripts, by
// switching them off or by a policy of its own, which <noscript> would not notice.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/text_parts.h"
#include "report/bundle.h"
#include "report/format.h"
#include "report/report.h"
#include "report/text_parts.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::size_t kMostRows = 64;

// "time_ns" → "time".
std::string spoken(std::string_view name) {
  std::string text(name.ends_with("_ns") ? name.substr(0, name.size() - 3) : name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void append_inert_json(std::string& out, std::string_view json) {
  for (std::size_t from = 0; from < json.size();) {
    const std::size_t at = std::min(json.find('<', from), json.size());
    out.append(json.substr(from, at - from));
    if (at < json.size()) out.append("\\u003c");
    from = at + 1;
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&': out.append("&amp;"); break;
      case '<': out.append("&lt;"); break;
      case '>': out.append("&gt;"); break;
      case '"': out.append("&quot;"); break;
      case '\0': break;
      default: out.push_back(c);
    }
  }
}

void append_element(std::string& out, std::string_view name, std::string_view text) {
  out.append("<").append(name).append(">");
  append_escaped(out, valid_utf8(text));
  out.append("</").append(name).append(">");
}

// The headline's breakdown: a row for each part of each device.
void append_breakdown(std::string& out, const Report& report) {
  for (const Answer& answer : report.answers) {
    const Table* table = answer.name == "overview" ? answer.table("breakdown") : nullptr;
    if (table == nullptr || table->rows.empty()) continue;
    append_element(out, "h2", "Where the time goes");
    out.append("<table><tr>");
    for (const TableColumn& column : table->columns) append_element(out, "th", spoken(column.name));
    out.append("</tr>\n");
    for (std::size_t i = 0; i < std::min(table->rows.size(), kMostRows); i++) {
      out.append("<tr>");
      for (std::size_t c = 0; c < table->rows[i].size(); c++) {
        append_element(out, "td", printable(format_value(table->rows[i][c], table->columns[c].unit)));
      }
      out.append("</tr>\n");
    }
    out.append("</table>\n");
    if (table->rows.size() > kMostRows) append_element(out, "p", "Further devices are in the figures below.");
  }
}

void append_findings(std::string& out, const Report& report) {
  const auto findings = findings_by_worth(report);
  if (findings.empty()) return;
  append_element(out, "h2", "What to change first");
  out.append("<ol>\n");
  for (const Finding* finding : findings) {
    out.append("<li>");
    append_element(out, "b", printable(finding->sentence));
    if (finding->gain) append_element(out, "p", gain_text(*finding->gain));
    out.append("<ul>");
    for (const Evidence& evidence : finding->evidence) {
      const bool known = !std::holds_alternative<std::monostate>(evidence.value);
      append_element(
          out, "li",
          printable(evidence.text) + (known ? " " + printable(format_value(evidence.value, evidence.unit)) : ""));
    }
    out.append("</ul>");
    if (finding->next) append_element(out, "p", "Next: " + printable(*finding->next));
    out.append("</li>\n");
  }
  out.append("</ol>\n");
}

void append_static(std::string& out, const Report& report) {
  out.append("<main class=\"static\">");
  append_element(out, "h1", "stepscope: " + printable(last_part(report.path)));
  append_element(out, "p",
                 "This is the report in short. Its pictures need scripts, which are not run here: save the file and "
                 "open it in a browser, no network is needed and nothing is sent anywhere.");
  append_findings(out, report);
  append_breakdown(out, report);
  append_element(out, "h2", "As text");
  append_element(out, "pre", to_text(report, {.width = 110}));
  out.append("</main>");
}

}  // namespace

Result<std::string> to_html(const Report& report) {
  if (bundle_script().empty()) {
    return fail(
        {.kind = ErrorKind::unsupported,
         .message = "this build of stepscope has no HTML page, because node was not there when it was made",
         .hint = "Install nodejs and npm, run \"npm ci --prefix web\" and build again; --json and --csv work as is"});
  }
  const std::string json = to_json(report);
  std::string out;
  out.reserve(json.size() + json.size() / 16 + bundle_script().size() + bundle_style().size() + 4096);
  out.append(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"");
  append_escaped(out, bundle_policy());
  out.append(
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>stepscope: ");
  append_escaped(out, printable(last_part(report.path)));
  out.append("</title>\n<style>");
  out.append(bundle_style());
  out.append("</style>\n</head>\n<body>\n<div id=\"app\">");
  append_static(out, report);
  out.append("</div>\n<script type=\"application/json\" id=\"report-data\">");
  append_inert_json(out, json);
  out.append("</script>\n<script>");
  out.append(bundle_script());
  out.append("</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace stepscope::report
