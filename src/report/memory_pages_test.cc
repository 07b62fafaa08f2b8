// The five pages: each by itself, of one tree, and whole or not at all.
#include "report/memory_pages.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temp_fixture.h"
#include "report/bundle.h"

namespace stepscope::report {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Table tree_of(std::string name, std::vector<std::string> categories) {
  Table table{.name = std::move(name),
              .columns = {{"rank", ValueType::integer, Unit::none, ""},
                          {"category", ValueType::text, Unit::none, ""},
                          {"path", ValueType::text, Unit::none, ""}},
              .rows = {}};
  for (std::string& category : categories) {
    const std::string path = "module_of_" + category;
    table.rows.push_back({std::int64_t{0}, std::move(category), path});
  }
  return table;
}

Report measured() {
  Report report{.path = "made", .inputs = {}, .hosts = {}, .issues = {}, .answers = {}, .failed = {}};
  Answer answer;
  answer.name = "memory_state";
  answer.tables = {tree_of("at_peak", {"parameter", "activation"}),
                   tree_of("largest", {"parameter", "gradient", "optimizer state", "activation", "input"})};
  report.answers.push_back(std::move(answer));
  return report;
}

}  // namespace

TEST_CASE("memory pages: five files, each with its own categories") {
  const TempFolder folder;
  const auto written = write_memory_pages(measured(), folder.path().string());
  if (bundle_script().empty()) {  // a build without node: told, and nothing is left
    REQUIRE_FALSE(written);
    CHECK(written.error().kind == ErrorKind::unsupported);
    CHECK(std::filesystem::is_empty(folder.path()));
    return;
  }
  REQUIRE(written);
  const auto holds = [&](std::string_view page, std::string_view part) {
    return content(folder.path() / page).find(part) != std::string::npos;
  };
  for (const std::string_view name : memory_page_names()) CHECK(holds(name, "<!doctype html>"));
  CHECK(holds("params_memory_sunburst.html", "module_of_parameter"));
  CHECK_FALSE(holds("params_memory_sunburst.html", "module_of_gradient"));
  CHECK(holds("grads_memory_sunburst.html", "module_of_gradient"));
  CHECK(holds("os_memory_sunburst.html", "module_of_optimizer state"));
  CHECK(holds("activation_memory_sunburst.html", "module_of_input"));
  CHECK(holds("summary_sunburst.html", "module_of_activation"));
  CHECK_FALSE(holds("summary_sunburst.html", "module_of_gradient"));  // is not there at the peak
}

TEST_CASE("memory pages: a report without the answer, a folder that is not there") {
  const TempFolder folder;
  CHECK(write_memory_pages(Report{}, folder.path().string()).error().kind == ErrorKind::usage);
  if (!bundle_script().empty()) {
    CHECK(write_memory_pages(measured(), folder / "none").error().kind == ErrorKind::unreadable);
  }
}

}  // namespace stepscope::report
