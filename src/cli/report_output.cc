#include "cli/report_output.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/help.h"
#include "cli/terminal.h"
#include "report/anonymous.h"

namespace stepscope::cli {

report::TextStyle text_style(const std::string& path) {
  const Terminal terminal = terminal_of(1);
  return {.color = terminal.color && path == "-", .ascii = terminal.ascii, .width = terminal.width, .max_rows = 0};
}

void ReportOutput::add_options(CLI::App& app, const std::string& longest) {
  auto* as_json = app.add_flag("--json", json, "One JSON object (docs/report-json.md)");
  auto* as_csv = app.add_flag("--csv", csv, "One CSV for each table, with exact values");
  auto* as_page =
      app.add_option("--html", html, "Write one self-contained page")->type_name("FILE")->check(output_file());
  as_json->excludes(as_csv, as_page);
  as_csv->excludes(as_page);
  app.add_option("-o,--output", path, "Write to FILE; - is standard output")
      ->type_name("FILE")
      ->excludes(as_page)
      ->check(output_file());
  app.add_flag("--anonymous", anonymous, "Leave out hosts, users and the folders of absolute paths");
  app.add_option("--rows", rows, "Longest table in the text; 0 shows all rows (default: " + longest + ")")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000'000));
}

bool ReportOutput::to_folder() const {
  std::error_code code;
  return !html.empty() && std::filesystem::is_directory(html, code);
}

Result<void> ReportOutput::write(Report report, bool details, std::size_t longest) const {
  if (anonymous) report::anonymize(report);
  if (!html.empty()) {
    const auto page = report::to_html(report);
    if (!page) return fail(page.error());
    if (auto written = write_file(html, *page); !written) return written;
    if (html != "-") print_notice(fmt::format("wrote {}; open it in a browser, it needs no network", html));
    return {};
  }
  if (json) return write_file(path, report::to_json(report));
  if (csv) return write_file(path, report::to_csv(report));
  report::TextStyle style = text_style(path);
  style.details = details;
  style.stacks = stacks;
  style.max_rows = rows >= 0 ? static_cast<std::size_t>(rows) : longest;
  style.every_row = rows == 0;
  return write_file(path, report::to_text(report, style));
}

}  // namespace stepscope::cli
