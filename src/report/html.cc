// The report as one page: the bundle of web/ and the report's own JSON, inline. The page asks the network for nothing;
// its policy (by hash) lets no other script or style run, so a hostile name in a trace stays a name.
//
// The JSON stands in a data element. There "<" is written as \u003c: it can occur inside JSON strings only, and without
// it no text can end the element or open a comment.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/text_parts.h"
#include "report/bundle.h"
#include "report/report.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

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
  out.append(
      "</style>\n</head>\n<body>\n<div id=\"app\"></div>\n"
      "<noscript><p>The figures of this report need scripts to be shown; nothing is sent anywhere. As text:</p><pre>");
  append_escaped(out, valid_utf8(to_text(report, {.width = 110})));
  out.append("</pre></noscript>\n<script type=\"application/json\" id=\"report-data\">");
  append_inert_json(out, json);
  out.append("</script>\n<script>");
  out.append(bundle_script());
  out.append("</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace stepscope::report
