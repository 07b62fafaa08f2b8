#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "report/bundle.h"
#include "report/report.h"

using namespace stepscope;

namespace {

constexpr std::string_view kHostile = "</script><img src=x onerror=alert(1)><!-- ]]> \" ' & \xff\x01";

Report hostile_report() {
  Report report;
  report.path = "runs/" + std::string(kHostile);
  report.inputs.push_back({.path = std::string(kHostile), .format = "chrome_trace"});
  report.issues.push_back({.code = "odd", .sentence = std::string(kHostile)});
  report.answers.push_back({.name = std::string(kHostile),
                            .summary = std::string(kHostile),
                            .scalars = {{.name = std::string(kHostile), .value = std::string(kHostile)}},
                            .notes = {std::string(kHostile)}});
  const Table breakdown{.name = "breakdown",
                        .columns = {{.name = "part"}, {.name = "time_ns", .unit = Unit::ns}},
                        .rows = {{Value("idle"), Value(std::int64_t{1'000'000})}}};
  const Finding finding{
      .sentence = "Slow <b>", .gain = Gain{.speedup_low = 1.1, .speedup_high = 1.25}, .next = std::string(kHostile)};
  report.answers.push_back({.name = "overview", .tables = {breakdown}, .findings = {finding}});
  return report;
}

std::size_t count(std::string_view text, std::string_view wanted) {
  std::size_t found = 0;
  for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) found++;
  return found;
}

std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t start = text.find(from) + from.size();
  return text.substr(start, text.find(to, start) - start);
}

}  // namespace

TEST_CASE("a build without the page's scripts says what to install") {
  if (!report::bundle_script().empty()) return;
  const auto page = report::to_html(Report{});
  REQUIRE(!page);
  CHECK(page.error().kind == ErrorKind::unsupported);
  CHECK(page.error().hint.find("nodejs") != std::string::npos);
}

TEST_CASE("the page carries the report's JSON and hostile texts stay texts") {
  if (report::bundle_script().empty()) {
    MESSAGE("skipped: this build has no page (no node)");
    return;
  }
  const Report report = hostile_report();
  const auto made = report::to_html(report);
  REQUIRE(made);
  const std::string& page = *made;

  // Only the page's own elements: nothing that a name holds opens or closes one.
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script") == 2);
  CHECK(count(page, "<img") == 0);
  CHECK(count(page, "<!--") == 0);
  CHECK(page.find('\xff') == std::string::npos);

  // What is there without scripts names the finding and where the time goes, before the text of all.
  CHECK(count(page, "<noscript") == 0);
  const std::string_view still = between(page, "<div id=\"app\">", "</div>");
  CHECK(still.find("<b>Slow &lt;b&gt;</b><p>gain: steps 1.10× to 1.25× as fast") != std::string_view::npos);
  CHECK(still.find("<td>idle</td><td>1.00 ms</td>") != std::string_view::npos);

  std::string json(between(page, "id=\"report-data\">", "</script>"));
  CHECK(json.find('<') == std::string::npos);
  for (std::size_t at = json.find("\\u003c"); at != json.npos; at = json.find("\\u003c", at)) json.replace(at, 6, "<");
  CHECK(json == report::to_json(report));

  CHECK(between(page, "<title>", "</title>").find("script&gt;&lt;img") != std::string_view::npos);
  CHECK(page.find("Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-") != std::string::npos);
  CHECK(page.find("<script>" + std::string(report::bundle_script()) + "</script>") != std::string::npos);
  for (const std::string_view address : {"http://", "https://"}) {
    CHECK(count(page, address) == count(report::bundle_script(), address));
  }
}
