#include <algorithm>
#include <array>

#include "report/format.h"
#include "report/text_parts.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

const Answer* find(const Report& report, std::string_view name) {
  const auto found =
      std::find_if(report.answers.begin(), report.answers.end(), [&](const Answer& a) { return a.name == name; });
  return found == report.answers.end() ? nullptr : &*found;
}

}  // namespace

void write_overview(Page& page, const Report& report) {
  if (const Answer* overview = find(report, "overview")) {
    page.line();
    write_scalars(page, *overview);
  }
  for (const auto& answer : report.answers) {
    if (answer.tables.empty()) continue;
    page.section("Top of " + answer.name);
    write_table(page, answer.tables.front(), {.max_rows = page.style().max_rows});
  }
  bool titled = false;
  for (const auto& answer : report.answers) {
    for (const auto& finding : answer.findings) {
      if (!titled) page.section("Findings");
      titled = true;
      write_finding(page, finding);
    }
  }
}

void write_next(Page& page, const Report& report) {
  std::string names;
  for (const auto& answer : report.answers) names += (names.empty() ? "" : ", ") + answer.name;
  if (names.empty()) return;
  page.line();
  page.hanging(page.ink(Ink::dim, "More: "),
               "stepscope report PATH --only NAME (" + names + "), --html report.html, --json");
}

}  // namespace stepscope::report
