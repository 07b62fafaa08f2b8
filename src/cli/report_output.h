// The part of a command line that says how a report is written: as text, JSON, CSV or a page, and where to. Shared by
// the commands that make reports.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "base/result.h"
#include "model/answer.h"
#include "report/report.h"

namespace stepscope::cli {

// How text that goes to `path` looks: as the terminal is, and in color only where it goes there.
report::TextStyle text_style(const std::string& path);

struct ReportOutput {
  bool json = false, csv = false, anonymous = false;
  std::string html, path = "-";
  long rows = -1;       // not given
  bool stacks = false;  // whole ones in the text

  // `longest` is what the longest table has where --rows is not given, in the words of the help.
  void add_options(CLI::App& app, const std::string& longest);
  // Where the report goes, of path and html.
  const std::string& target() const { return html.empty() ? path : html; }
  bool to_folder() const;  // the page is to go into a folder
  // `details` and `rows` are of the text: whole answers, and the longest table where --rows is not given.
  Result<void> write(Report report, bool details, std::size_t longest) const;
};

}  // namespace stepscope::cli
