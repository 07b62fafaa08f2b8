#include "report/memory_pages.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "report/report.h"

namespace stepscope::report {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 5> kNames{"params_memory_sunburst.html", "grads_memory_sunburst.html",
                                                 "os_memory_sunburst.html", "activation_memory_sunburst.html",
                                                 "summary_sunburst.html"};

// The categories of each page, from the table in which each is where it was largest; the summary is the peak's.
constexpr std::array<std::array<std::string_view, 2>, 4> kCategories{
    {{"parameter", "buffer"}, {"gradient", ""}, {"master parameter", "optimizer state"}, {"activation", "input"}}};

Table only(const Table& table, std::span<const std::string_view> categories) {
  Table kept{.name = table.name, .columns = table.columns, .rows = {}};
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [](const TableColumn& one) { return one.name == "category"; });
  const auto at = static_cast<std::size_t>(column - table.columns.begin());
  for (const auto& row : table.rows) {
    const auto* name = at < row.size() ? std::get_if<std::string>(&row[at]) : nullptr;
    if (name != nullptr && std::find(categories.begin(), categories.end(), *name) != categories.end()) {
      kept.rows.push_back(row);
    }
  }
  return kept;
}

// The report with one tree of its answer; what is about all of them is on the page of the summary.
Report page_of(const Report& whole, const Answer& answer, std::size_t page) {
  Report out{.path = whole.path,
             .inputs = whole.inputs,
             .hosts = whole.hosts,
             .issues = whole.issues,
             .answers = {},
             .failed = {}};
  Answer one{.name = answer.name,
             .summary = answer.summary,
             .scalars = {},
             .tables = {},
             .series = {},
             .bands = {},
             .findings = {},
             .notes = answer.notes};
  if (page < kCategories.size()) {
    if (const Table* largest = answer.table("largest")) one.tables.push_back(only(*largest, kCategories[page]));
  } else {
    for (const char* name : {"at_peak", "categories", "steps", "allocator"}) {
      if (const Table* table = answer.table(name)) one.tables.push_back(*table);
    }
    one.scalars = answer.scalars;
    one.findings = answer.findings;
    one.series = answer.series;
  }
  out.answers.push_back(std::move(one));
  return out;
}

Result<void> write(const fs::path& path, const std::string& text) {
  const fs::path part = path.string() + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code code;
  if (out) fs::rename(part, path, code);
  if (out && !code) return {};
  fs::remove(part, code);
  return fail({ErrorKind::unreadable, "cannot be written", path.string(), std::nullopt,
               "Check the folder's permissions and the space on its disk"});
}

}  // namespace

std::span<const std::string_view> memory_page_names() { return kNames; }

Result<void> write_memory_pages(const Report& report, const std::string& folder) {
  const Answer* answer = report.answer("memory_state");
  if (answer == nullptr) {
    return fail({ErrorKind::usage, "the report has no answer memory_state", "", std::nullopt,
                 "Ask for it: --only memory_state"});
  }
  for (std::size_t page = 0; page < kNames.size(); page++) {
    const auto html = to_html(page_of(report, *answer, page));
    if (!html) return fail(html.error());
    if (auto written = write(fs::path(folder) / kNames[page], *html); !written) return written;
  }
  return {};
}

}  // namespace stepscope::report
