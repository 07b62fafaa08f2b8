// What to change first: the findings of a report by their worth, with nothing else.
#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/shell_word.h"
#include "base/version.h"
#include "model/finding_order.h"
#include "report/format.h"
#include "report/json_parts.h"
#include "report/text_parts.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

std::string shown(const Answer* answer, std::string_view name) {
  const Scalar* scalar = answer == nullptr ? nullptr : answer->scalar(name);
  return scalar == nullptr ? std::string(kUnknown) : printable(format_value(scalar->value, scalar->unit));
}

// "operators on the host, backward 52.1 % | …": what bounds the steps, most first; parts of all ranks and findings.
void write_partition(Page& page, const Answer& advice) {
  constexpr std::size_t kMostParts = 6;
  const Table* table = advice.table("partition");
  if (table == nullptr) return;
  std::map<std::string, double> shares;
  for (const auto& row : table->rows) {
    const std::string phase = format_value(row[2], Unit::none);
    std::string name = format_value(row[1], Unit::none);
    if (phase != "other" && phase != name) name += ", " + phase;
    shares[name] += number_of(row[5]).value_or(0);
  }
  std::vector<std::pair<std::string, double>> sorted(shares.begin(), shares.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> items;
  for (const auto& [name, share] : sorted) {
    if (items.size() == kMostParts) break;
    items.push_back(fmt::format("{} {}", name, page.ink(Ink::strong, format_value(share, Unit::ratio))));
  }
  page.items("It goes to ", items, " | ");
}

void write_headline(Page& page, const Answer* advice, bool any, bool any_offer) {
  const std::string bound = shown(advice, "bound_by"), step = shown(advice, "step_ns");
  if (bound == kUnknown) return;
  page.line();
  page.hanging("", fmt::format("{}, bound by {} ({} of what bounds it)", page.ink(Ink::strong, "Step " + step),
                               page.ink(Ink::strong, bound), shown(advice, "bound_share")));
  write_recorded(page, *advice, "figures here are");
  write_partition(page, *advice);
  if (!any) {
    page.line();
    page.hanging(
        "", fmt::format("Nothing was found that is worth more than {:.0f} %{}: bound by {}.", 100 * (kWorthAdvice - 1),
                        any_offer ? " and leaves what is computed as it is" : "", bound));
  }
}

}  // namespace

std::vector<const Finding*> advised(const Report& report) {
  std::vector<const Finding*> out;
  for (const auto at : report.by_worth) {
    if (!repeats_advice(report, at)) out.push_back(&report.finding(at));
  }
  return out;
}

std::string to_advice_text(const Report& report, const TextStyle& style) {
  Page page(style);
  write_input(page, report);
  const Answer* advice = report.answer(kAdvice);
  const auto all = advised(report);
  std::vector<const Finding*> first, rest;
  for (const Finding* finding : all) (worth(*finding) >= kWorthAdvice ? first : rest).push_back(finding);
  const bool any_offer = std::any_of(rest.begin(), rest.end(), [](const Finding* one) { return is_offer(*one); });
  write_headline(page, advice, !first.empty(), any_offer);
  if (!first.empty()) page.section("Worth changing, most first");
  for (const Finding* finding : first) write_finding(page, *finding);
  if (!rest.empty()) page.section("Also seen, worth less or not predicted");
  for (const Finding* finding : rest) write_finding(page, *finding);
  write_failed(page, report);
  if (advice != nullptr && !advice->notes.empty()) {
    page.line();
    for (const std::string& note : advice->notes) page.hanging("  ", printable(note));
  }
  page.line();
  const std::string path = shell_word(printable(report.path));
  std::string_view next = "Next: ";
  if (!first.empty()) {
    page.hanging(page.ink(Ink::dim, next), "change the first, record again, then: stepscope diff " + path + " NEW");
    next = "      ";
  }
  page.hanging(page.ink(Ink::dim, next), "where the time goes: stepscope report " + path + " --only advice");
  return page.take();
}

std::string to_advice_json(const Report& report) {
  JsonWriter json;
  json.begin_object().key("schema_version").number(kSchemaVersion);
  json.key("stepscope").begin_object(JsonWriter::Layout::line).key("version").text(version());
  json.key("commit").text(commit()).end_object();
  json.key("path").text(report.path);
  if (const Answer* advice = report.answer(kAdvice)) {
    for (const Scalar& scalar : advice->scalars) {
      json.key(scalar.name);
      json.value(scalar.value);
    }
    json.key("notes").begin_array();
    for (const std::string& note : advice->notes) json.text(note);
    json.end_array();
  }
  json.key("findings").begin_array();
  for (const Finding* finding : advised(report)) write_json(json, *finding);
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::report
