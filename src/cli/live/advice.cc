#include "cli/live/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/shell_word.h"
#include "model/finding_order.h"
#include "report/advice.h"
#include "report/text_parts.h"
#include "report/utf8.h"
#include "run/run_folder.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kMostFindings = 3;

std::string told(const Finding& finding) {
  const std::string place = report::place_text(finding.where);
  const std::string gain =
      finding.gain ? fmt::format("{:.2f}x to {:.2f}x", finding.gain->speedup_low, finding.gain->speedup_high)
                   : "no price";
  return fmt::format("  {:<14}  {}\n{}", gain, report::printable(finding.sentence),
                     place.empty() ? "" : fmt::format("  {:<14}  {}\n", "", place));
}

}  // namespace

std::string newest_advice(const std::string& run_folder) {
  if (run::trace_files(run_folder).empty()) return "Nothing is recorded yet: t records 3 steps.\n";
  const Result<Run> opened = session::open(std::span(&run_folder, 1), {});
  if (!opened) return to_text(opened.error()) + "\n";
  const Result<Report> made = session::advise(*opened);
  if (!made) return to_text(made.error()) + "\n";
  std::string out;
  std::size_t count = 0;
  for (const Finding* finding : report::advised(*made)) {
    if (count == kMostFindings) break;
    if (worth(*finding) < kWorthAdvice) continue;  // they are ordered by the step that is to be expected
    out += told(*finding);
    count++;
  }
  if (out.empty()) out = fmt::format("  nothing is worth more than {:.0f} %\n", 100 * (kWorthAdvice - 1));
  return "Worth changing, most first; all of it: stepscope advise " + shell_word(run_folder) + "\n" + out;
}

}  // namespace stepscope::cli
