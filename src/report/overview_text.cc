// The one-screen overview. It shows what the answers hold under known names and computes nothing; whatever is missing
// is left out, so a report of few answers is a short page.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/shell_word.h"
#include "model/finding_order.h"
#include "report/bar.h"
#include "report/format.h"
#include "report/shorten.h"
#include "report/text_parts.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::size_t kMostBars = 8;
constexpr std::size_t kLongestBar = 100;

// "113.4 ms" where the scalar is there and known, else nothing.
std::optional<std::string> shown(const Answer* answer, std::string_view name) {
  const Scalar* scalar = answer == nullptr ? nullptr : answer->scalar(name);
  if (scalar == nullptr) return std::nullopt;
  std::string text = printable(format_value(scalar->value, scalar->unit));
  if (text == kUnknown) return std::nullopt;
  return text;
}

// Which window the headline is about: "steps" or "span".
std::string window_of(const Answer& overview) { return shown(&overview, "window").value_or("span"); }

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

// A column of a table by name, as a reader of its rows; absent columns and cells read as unknown.
class ColumnOf {
 public:
  ColumnOf(const Table& table, std::string_view name) {
    const auto same = [&](const TableColumn& column) { return column.name == name; };
    at_ = static_cast<std::size_t>(std::find_if(table.columns.begin(), table.columns.end(), same) -
                                   table.columns.begin());
  }
  Value operator()(const std::vector<Value>& row) const { return at_ < row.size() ? row[at_] : Value(); }

 private:
  std::size_t at_;
};

void write_step_line(Page& page, const Answer& overview) {
  const auto step = shown(&overview, "step_time_median_ns");
  const auto spread = shown(&overview, "step_time_spread");
  std::vector<std::string> items;
  if (window_of(overview) == "steps" && step) {
    items.push_back(page.ink(Ink::strong, "Step " + *step) + (spread ? " ±" + *spread : ""));
    if (const auto count = overview.whole("whole_step_count")) {
      items.push_back("median of " + format_plural(static_cast<std::uint64_t>(*count), "whole step"));
    }
  } else {
    if (const auto span = shown(&overview, "span_ns")) {
      items.push_back(page.ink(Ink::strong, "Device span " + *span) + ", first to last device work");
    }
    items.push_back(step ? "one whole step, " + *step : "no whole step");
    if (items.size() == 1) items[0] = page.ink(Ink::strong, step ? "One whole step, " + *step : "No whole step");
  }
  page.items("", items, " · ");
}

void write_facts(Page& page, const Report& report, const Answer& overview) {
  const std::string window = window_of(overview), ratio_suffix = window == "steps" ? "_steps" : "";
  const Answer* use = report.answer("utilization");
  std::vector<std::string> items;
  const auto add = [&](std::string_view before, const std::optional<std::string>& text, std::string_view after = "") {
    if (text) items.push_back(fmt::format("{} {}{}", before, page.ink(Ink::strong, *text), after));
  };
  add("GPU busy", shown(&overview, "gpu_utilization_" + window));
  const Scalar* filled = use == nullptr ? nullptr : use->scalar("sm_efficiency_" + window);
  const auto* share = filled == nullptr ? nullptr : std::get_if<double>(&filled->value);
  add("SM efficiency", shown(use, "sm_efficiency_" + window),
      share != nullptr && *share > 1 ? " (kernels overlap)" : "");
  add("occupancy", shown(use, "occupancy"));
  add("tensor cores", shown(use, "tensor_core_share"), " of kernel time");
  if (!items.empty()) page.items("", items, " · ");
  const auto communication = shown(&overview, "communication_" + window + "_ns");
  if (!communication || *communication == format_time(0)) return;
  items.clear();
  const auto whole = shown(&overview, window + "_ns");
  add("Communication", communication, whole ? " of " + *whole : "");
  add("hidden", shown(&overview, "communication_hidden_ratio" + ratio_suffix));
  add("exposed", shown(&overview, "communication_exposed_" + window + "_ns"));
  page.items("", items, " · ");
}

struct Bar {
  std::string title;  // "rank 0", "rank 0 device 1"
  std::vector<BarPart> parts;
};

std::vector<Bar> bars_of(const Table& table) {
  const ColumnOf rank(table, "rank"), device(table, "device"), part(table, "part"), time(table, "time_ns"),
      share(table, "share");
  std::vector<Bar> bars;
  for (const auto& row : table.rows) {
    std::string title = "rank " + format_value(rank(row), Unit::none);
    if (!std::holds_alternative<std::monostate>(device(row)))
      title += " device " + format_value(device(row), Unit::none);
    if (bars.empty() || bars.back().title != title) bars.push_back({title, {}});
    const std::string label = format_value(share(row), Unit::ratio);
    bars.back().parts.push_back({format_value(part(row), Unit::none), number_of(share(row)).value_or(0), label});
  }
  return bars;
}

// How far a bar is from the median of all, part by part.
std::vector<double> distances(const std::vector<Bar>& bars) {
  std::map<std::string_view, std::vector<double>> shares;
  for (const Bar& bar : bars) {
    for (const BarPart& part : bar.parts) shares[part.name].push_back(part.share);
  }
  for (auto& [name, all] : shares) {
    all.resize(bars.size());  // a part that a bar lacks is 0 there
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  }
  std::vector<double> out;
  for (const Bar& bar : bars) {
    double& sum = out.emplace_back();
    for (const BarPart& part : bar.parts) sum += std::abs(part.share - shares[part.name][bars.size() / 2]);
  }
  return out;
}

// The bars worth their lines: all of a few ranks, of many those that stand out, in the order of ranks.
std::vector<std::size_t> most_unlike(const std::vector<Bar>& bars) {
  std::vector<std::size_t> order(bars.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (bars.size() <= kMostBars) return order;
  const std::vector<double> far = distances(bars);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return far[a] > far[b]; });
  order.resize(kMostBars);
  std::sort(order.begin(), order.end());
  return order;
}

void write_breakdown(Page& page, const Answer& overview) {
  const Table* table = overview.table("breakdown");
  if (table == nullptr || table->rows.empty()) return;
  const auto bars = bars_of(*table);
  page.line();
  if (bars.size() == 1) {
    page.line("  " + draw_bar(page, bars.front().parts, std::min(page.width() - 4, kLongestBar)));
    return page.items("  ", legend(page, bars.front().parts), "  ");
  }
  std::size_t title_width = 0;
  std::vector<BarPart> all;  // every part once, for the legend; the shares of each rank are in --only overview
  for (const auto& bar : bars) {
    title_width = std::max(title_width, bar.title.size());
    for (const auto& part : bar.parts) {
      const auto same = [&](const BarPart& p) { return p.name == part.name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back({part.name, 0, ""});
    }
  }
  std::stable_partition(all.begin(), all.end(), [](const BarPart& part) { return !part.name.starts_with("idle"); });
  const std::size_t room = page.width() - std::min(page.width(), title_width + 6);
  for (const std::size_t i : most_unlike(bars)) {
    page.line(fmt::format("  {:<{}}  {}", bars[i].title, title_width,
                          draw_bar(page, bars[i].parts, std::clamp<std::size_t>(room, 10, kLongestBar))));
  }
  if (bars.size() > kMostBars) {
    page.line("  " + page.ink(Ink::dim, fmt::format("{} of {}, those most unlike the others; all in --only overview",
                                                    kMostBars, bars.size())));
  }
  page.items("  ", legend(page, all), "  ");
}

// "Phases (mean), device: forward 214.0 | backward 431.0 | optimizer 61.0 ms".
void write_phases(Page& page, const Answer& overview) {
  const Table* table = overview.table("phases");
  if (table == nullptr || table->rows.empty()) return;
  const ColumnOf rank(*table, "rank"), phase(*table, "phase"), host(*table, "host_ns"), device(*table, "device_ns");
  const Value first = rank(table->rows.front());
  const bool several =
      std::any_of(table->rows.begin(), table->rows.end(), [&](const auto& row) { return rank(row) != first; });
  for (const auto& [title, column] : {std::pair{"host", host}, std::pair{"device", device}}) {
    std::vector<double> numbers;
    for (const auto& row : table->rows) {
      if (rank(row) == first) numbers.push_back(number_of(column(row)).value_or(0));
    }
    if (std::all_of(numbers.begin(), numbers.end(), [](double ns) { return ns == 0; })) continue;
    const ColumnFormat format = column_format(Unit::ns, numbers);
    std::vector<std::string> items;
    for (const auto& row : table->rows) {
      if (rank(row) != first || number_of(column(row)).value_or(0) == 0) continue;
      items.push_back(
          fmt::format("{} {}", format_value(phase(row), Unit::none), page.ink(Ink::strong, format.cell(column(row)))));
    }
    std::string lead =
        fmt::format("Phases (mean), {}{}: ", title, several ? ", rank " + format_value(first, Unit::none) : "");
    items.back().append(1, ' ').append(format.suffix);
    page.items(lead, items, " | ");
  }
}

void write_top(Page& page, const Answer* answer, std::string_view table_name, std::string_view title,
               std::vector<std::string> columns) {
  const Table* table = answer == nullptr ? nullptr : answer->table(table_name);
  if (table == nullptr || table->rows.empty()) return;
  page.section(title);
  write_table(page, *table, {.max_rows = page.style().max_rows, .columns = std::move(columns), .say_left_out = false});
}

void write_findings(Page& page, const Report& report) {
  const auto all = findings_by_worth(report);
  if (all.empty()) return;
  page.section("Findings");
  // Other answers price what they find by the recorded steps.
  const Answer* advice = report.answer(kAdvice);
  const bool any_gain = advice != nullptr && std::any_of(advice->findings.begin(), advice->findings.end(),
                                                         [](const Finding& one) { return one.gain.has_value(); });
  if (any_gain) write_recorded(page, *advice, "gains that advise tells are");
  for (const Finding* finding : all) write_finding(page, *finding);
}

// What fixing all findings that have a gain would give.
void write_joint_gain(Page& page, const Answer* overview) {
  const Scalar* low = overview == nullptr ? nullptr : overview->scalar("speedup_of_all_low");
  const Scalar* high = overview == nullptr ? nullptr : overview->scalar("speedup_of_all_high");
  if (low == nullptr || high == nullptr) return;
  const auto *least = std::get_if<double>(&low->value), *most = std::get_if<double>(&high->value);
  if (least == nullptr || most == nullptr) return;
  const std::string from = fmt::format("{:.2f}×", *least), to = fmt::format("{:.2f}×", *most);
  page.hanging("  ", fmt::format("All gains together: steps {}{} as fast", from == to ? "" : from + " to ", to));
}

}  // namespace

std::vector<const Finding*> findings_by_worth(const Report& report) {
  std::vector<const Finding*> all;
  for (const auto at : report.by_worth) all.push_back(&report.finding(at));
  if (!all.empty()) return all;
  for (const auto& answer : report.answers) {
    for (const auto& finding : answer.findings) all.push_back(&finding);
  }
  return all;
}

void write_overview(Page& page, const Report& report) {
  const Answer* overview = report.answer("overview");
  if (overview != nullptr) {
    page.line();
    write_step_line(page, *overview);
    write_facts(page, report, *overview);
    write_breakdown(page, *overview);
    write_phases(page, *overview);
  }
  write_top(page, overview, "top_families", "Families of device work", {"family", "share", "total_ns", "count"});
  write_top(page, overview, "top_kernels", "Kernels", {"name", "share", "total_ns", "count", "family"});
  write_top(page, overview, "top_operators", "Operators", {"name", "device_self_ns", "host_self_ns", "calls"});
  write_top(page, report.answer("idle"), "by_op", "Idle time of the device",
            {"cause", "op", "phase", "idle_ns", "gaps", "devices"});
  write_top(page, report.answer("graph"), "names", "Nodes of the execution trace", {"name", "kind", "nodes", "shapes"});
  write_findings(page, report);
  write_joint_gain(page, overview);
}

namespace {

// Of any table: what a process used is told without ranks, phases or steps.
bool has_rows(const Answer& answer) {
  return std::any_of(answer.tables.begin(), answer.tables.end(),
                     [](const Table& table) { return !table.rows.empty(); });
}

}  // namespace

void write_next(Page& page, const Report& report) {
  std::vector<std::string> names;
  const Answer* next = nullptr;
  for (const std::string_view name : {"kernels", "operators", "graph", "system", "overview"}) {
    const Answer* answer = report.answer(name);
    if (next == nullptr && answer != nullptr && has_rows(*answer)) next = answer;
  }
  for (const auto& answer : report.answers) {
    names.push_back(answer.name);
    if (answer.name == "overview") continue;  // this page was it
    if (next == nullptr || (next->findings.empty() && !answer.findings.empty())) next = &answer;
  }
  if (next == nullptr) return;
  constexpr std::string_view page_option = " --html report.html";
  std::string command = "stepscope report " + shell_word(printable(report.path));
  // Whole, so that it can be pasted, or not with its path at all.
  if (6 + display_width(command) + page_option.size() > page.width()) command = "stepscope report …";
  page.line();
  page.hanging(page.ink(Ink::dim, "Next: "), fmt::format("{} --only {}", command, next->name));
  page.hanging("      ", fmt::format("{}{}", command, page_option));
  page.hanging("      ",
               "stepscope view" + command.substr(std::string_view("stepscope report").size()) + "  # in the browser");
  page.hanging("      ", page.ink(Ink::dim, "answers for --only: " + joined(names, ", ")));
}

}  // namespace stepscope::report
