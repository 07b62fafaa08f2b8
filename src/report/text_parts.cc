#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "model/unrelated_files.h"
#include "report/format.h"
#include "report/shorten.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + printable(word);
  return text;
}

// "rank 3 of 8 (file name)" for one file, "8 ranks (distributedInfo)" for several.
std::string ranks_text(const std::vector<Input>& inputs) {
  std::set<std::string> sources;
  std::set<std::int64_t> ranks;
  std::int64_t world_size = 0;
  for (const auto& input : inputs) {
    if (!input.rank_source.empty()) sources.insert(input.rank_source);
    ranks.insert(input.rank);
    world_size = std::max(world_size, input.world_size);
  }
  std::string text = ranks.size() == 1 ? fmt::format("rank {}", *ranks.begin()) : format_plural(ranks.size(), "rank");
  if (world_size > 0) text += fmt::format(" of {}", world_size);
  if (!sources.empty()) text += fmt::format(" (by {})", joined(sources));
  return text;
}

Ink ink_of(Severity severity) {
  switch (severity) {
    case Severity::lost: return Ink::bad;
    case Severity::repaired: return Ink::warning;
    case Severity::info: break;
  }
  return Ink::dim;
}

// The same issue, in one file or in many.
struct IssueGroup {
  const Issue* first = nullptr;
  std::uint64_t count = 0;
  std::set<std::string_view> files;
};

// Those that lost data first.
std::vector<IssueGroup> grouped(const std::vector<Issue>& issues) {
  std::vector<IssueGroup> groups;
  std::map<std::tuple<Severity, std::string_view, std::string_view>, std::size_t> known;
  for (const Issue& issue : issues) {
    const auto [at, is_new] = known.try_emplace({issue.severity, issue.sentence, issue.advice}, groups.size());
    if (is_new) groups.push_back({&issue, 0, {}});
    IssueGroup& group = groups[at->second];
    group.count += issue.count;
    if (!issue.file.empty()) group.files.insert(issue.file);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const IssueGroup& a, const IssueGroup& b) { return a.first->severity > b.first->severity; });
  return groups;
}

std::string place_of(const IssueGroup& group, bool several_files) {
  const Issue& issue = *group.first;
  std::string text;
  if (several_files && !issue.file.empty()) text = printable(issue.file);
  if (group.files.size() > 1) return text + " and " + format_plural(group.files.size() - 1, "more file");
  if (issue.offset)
    text += fmt::format("{}byte {}", text.empty() ? "" : ", ", format_count(static_cast<std::int64_t>(*issue.offset)));
  if (issue.event)
    text += fmt::format("{}event {}", text.empty() ? "" : ", ", format_count(static_cast<std::int64_t>(*issue.event)));
  return text;
}

}  // namespace

void write_input(Page& page, const Report& report) {
  std::set<std::string> writers, files;
  std::uint64_t events = 0, bytes = 0, cached = 0;
  for (const auto& input : report.inputs) {
    writers.insert(input.writer.empty() ? input.format : input.writer);
    events += input.events;
    if (files.insert(input.path).second) bytes += input.file_bytes;  // a file may hold several ranks
    cached += input.cached ? 1 : 0;
  }
  std::string path = printable(report.path);
  if (files.size() > 1 && files.contains(report.path)) {  // files named one by one
    path += " and " + format_plural(files.size() - 1, "more file");
  }
  page.paragraph(page.ink(Ink::strong, path), 0, 2);
  if (report.inputs.empty()) return page.line("nothing was read");
  std::vector<std::string> items;
  if (files.size() > 1) items.push_back(format_plural(files.size(), "file"));
  items.push_back(ranks_text(report.inputs));
  if (!joined(writers).empty()) items.push_back(joined(writers));
  items.push_back(format_plural(events, "event"));
  items.push_back(format_bytes(static_cast<double>(bytes)));
  if (cached > 0)
    items.push_back(cached == report.inputs.size() ? "from the cache" : fmt::format("{} from the cache", cached));
  for (auto& item : items) item = page.ink(Ink::dim, item);
  page.items("", items, page.ink(Ink::dim, " · "));
  for (const Issue& issue : report.issues) {
    if (issue.code == kUnrelatedFiles) page.paragraph(page.ink(Ink::bad, issue.sentence + ". " + issue.advice), 0, 2);
  }
  const bool lost = std::any_of(report.issues.begin(), report.issues.end(),
                                [](const Issue& issue) { return issue.severity == Severity::lost; });
  if (!lost) return;
  page.paragraph(
      page.ink(Ink::bad, "Partial: data was lost in the input (see Data quality); all figures are of what is left"), 0,
      2);
}

namespace {

// Unknown for one and the same reason: said once for all of them.
struct UnknownScalars {
  std::string names, reason;
};

bool is_unknown(const Scalar& scalar) { return std::holds_alternative<std::monostate>(scalar.value); }

// Scalars that share their reason with another; what is left goes to `others`.
std::vector<UnknownScalars> take_unknown(const Answer& answer, std::vector<const Scalar*>& others) {
  std::map<std::string_view, int> reasons;
  for (const Scalar& scalar : answer.scalars) reasons[scalar.meaning] += is_unknown(scalar) ? 1 : 0;
  std::vector<UnknownScalars> groups;
  for (const Scalar& scalar : answer.scalars) {
    if (!is_unknown(scalar) || scalar.meaning.empty() || reasons[scalar.meaning] < 2) {
      others.push_back(&scalar);
      continue;
    }
    const std::string reason = printable(scalar.meaning);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.reason == reason; });
    if (same != groups.end()) {
      same->names += ", " + shown_name(scalar);
    } else {
      groups.push_back({shown_name(scalar), reason});
    }
  }
  return groups;
}

}  // namespace

void write_scalars(Page& page, const Answer& answer) {
  std::vector<const Scalar*> scalars;
  const std::vector<UnknownScalars> unknown = take_unknown(answer, scalars);
  std::size_t name_width = 0, value_width = 0;
  std::vector<std::string> values;
  for (const Scalar* scalar : scalars) {
    values.push_back(printable(format_value(scalar->value, scalar->unit)));
    name_width = std::max(name_width, display_width(shown_name(*scalar)));
    if (!std::holds_alternative<std::string>(scalar->value))
      value_width = std::max(value_width, display_width(values.back()));
  }
  for (std::size_t i = 0; i < scalars.size(); i++) {
    const std::string name = shown_name(*scalars[i]);
    std::string line = name + std::string(name_width - display_width(name) + 2, ' ');
    values[i] = shorten_name(values[i], page.width() - std::min(page.width(), name_width + 4));
    const std::size_t wide = display_width(values[i]);
    line += std::string(value_width - std::min(value_width, wide), ' ') + page.ink(Ink::strong, values[i]);
    const std::size_t column = 2 + visible_width(line) + 2;
    const std::string meaning = printable(scalars[i]->meaning);
    // The meaning stands beside the value where there is room for a readable line, else it is left to --json.
    if (meaning.empty() || column + 30 > page.width()) {
      page.line("  " + line);
    } else {
      page.hanging("  " + line + "  ", page.ink(Ink::dim, meaning));
    }
  }
  for (const UnknownScalars& group : unknown) {
    page.hanging("  unknown: ", group.names);
    page.hanging("    ", page.ink(Ink::dim, group.reason));
  }
}

// Names of kernels are hundreds of characters long.
constexpr std::size_t kLongestGround = 72;

std::string gain_text(const Gain& gain) {
  const std::string least = fmt::format("{:.2f}×", gain.speedup_low), most = fmt::format("{:.2f}×", gain.speedup_high);
  std::string text =
      "gain: steps " + (most == "1.00×" ? "as fast as now" : (least == most ? "" : least + " to ") + most + " as fast");
  if (gain.step_ns > 0) {
    const auto now = static_cast<double>(gain.step_ns);
    const std::string shortest = format_time(now / gain.speedup_high), longest = format_time(now / gain.speedup_low);
    text +=
        fmt::format(", {}{} in place of {}", shortest == longest ? "" : shortest + " to ", longest, format_time(now));
  }
  if (!gain.binds.empty()) text += ", then bound by " + printable(gain.binds);
  if (!gain.how.empty()) text += " (" + printable(gain.how) + ")";
  return text;
}

std::string place_text(const Place& where) {
  std::vector<std::string> parts;
  const auto add = [&](const std::optional<std::string>& part, std::string_view before = "") {
    if (part && !part->empty()) parts.push_back(std::string(before) + printable(*part));
  };
  if (where.file && where.line) {
    parts.push_back(fmt::format("{}:{}", printable(*where.file), *where.line));
  } else {
    add(where.file);
  }
  add(where.function, "in ");
  add(where.module);
  add(where.op);
  add(where.phase, "phase ");
  if (where.rank) parts.push_back(fmt::format("rank {}", *where.rank));
  return fmt::format("{}", fmt::join(parts, " · "));
}

void write_finding(Page& page, const Finding& finding) {
  page.hanging(page.ink(Ink::accent, "  * "), printable(finding.sentence));
  if (const std::string place = place_text(finding.where); !place.empty()) page.hanging("    ", place);
  std::vector<std::string> grounds;
  for (const auto& evidence : finding.evidence) grounds.push_back(printable(evidence.text));
  grounds = shorten_names(grounds, kLongestGround);
  for (std::size_t i = 0; i < grounds.size(); i++) {
    const auto& [text, value, unit, query] = finding.evidence[i];
    if (std::holds_alternative<std::monostate>(value)) continue;
    grounds[i] += fmt::format(" {}", page.ink(Ink::strong, printable(format_value(value, unit))));
  }
  std::string sure = finding.confidence ? "confidence " + printable(*finding.confidence) : "";
  if (finding.confidence && finding.confidence_reason.empty()) grounds.push_back(std::exchange(sure, ""));
  if (!grounds.empty()) page.hanging("    ", fmt::format("{}", fmt::join(grounds, " · ")));
  if (!sure.empty()) page.hanging("    ", sure + ": " + printable(finding.confidence_reason));
  if (finding.gain) page.hanging("    ", gain_text(*finding.gain));
  if (finding.next) page.hanging("    → ", printable(*finding.next));
}

void write_recorded(Page& page, const Answer& advice, std::string_view which) {
  constexpr double kTelling = 0.03;
  const std::int64_t usual_ns = advice.whole("step_ns").value_or(0), more_ns = advice.whole("recording_ns").value_or(0);
  if (std::abs(static_cast<double>(more_ns)) < kTelling * static_cast<double>(usual_ns)) return;
  page.hanging("", fmt::format("Recorded steps took {}; {} of the job's other steps, {} each",
                               format_value(usual_ns + more_ns, Unit::ns), which, format_value(usual_ns, Unit::ns)));
}

void write_failed(Page& page, const Report& report) {
  if (report.failed.empty()) return;
  page.section("Not answered");
  for (const auto& [name, reason] : report.failed) page.hanging("  " + name + "  ", printable(reason));
}

namespace {

void write_issue(Page& page, const IssueGroup& group, bool several_files) {
  const Issue& issue = *group.first;
  std::string text = printable(issue.sentence);
  if (group.count > 1) text += fmt::format(" ({}×)", format_count(static_cast<std::int64_t>(group.count)));
  if (const std::string place = place_of(group, several_files); !place.empty())
    text += page.ink(Ink::dim, " [" + place + "]");
  if (!issue.advice.empty()) text += " → " + printable(issue.advice);
  page.hanging("  " + page.ink(ink_of(issue.severity), fmt::format("{:<9}", to_string(issue.severity))), text);
}

// Links of device work to launches, and what was not recorded: what the other answers rest on.
void write_grounds(Page& page, const Answer& quality) {
  std::vector<std::string> items;
  const auto add = [&](std::string_view name, std::string_view words) {
    const Scalar* scalar = quality.scalar(name);
    if (scalar == nullptr || !number_of(scalar->value)) return;
    items.push_back(fmt::format("{} {}", format_value(scalar->value, scalar->unit), words));
  };
  add("linked_ratio", "of device work linked to its launch");
  if (!items.empty()) add("launches_dropped_count", "launches without work");
  add("unclassified_ratio", "unclassified");
  page.items("  ", items, " · ");
  const Table* missing = quality.table("missing");
  if (missing == nullptr) return;
  std::vector<std::string> whats;
  for (const auto& row : missing->rows) {
    const std::string what = row.size() > 1 ? printable(format_value(row[1], Unit::none)) : "";
    if (!what.empty() && std::find(whats.begin(), whats.end(), what) == whats.end()) whats.push_back(what);
  }
  if (!whats.empty())
    page.hanging("  Not recorded: ", fmt::format("{} (why and how: --only quality)", fmt::join(whats, ", ")));
}

}  // namespace

void write_quality(Page& page, const Report& report) {
  const Answer* found = report.answer("quality");
  const bool grounds = found != nullptr && !page.style().details;
  if (report.issues.empty() && !grounds) return;
  page.section("Data quality");
  if (grounds) write_grounds(page, *found);
  const std::vector<IssueGroup> issues = grouped(report.issues);
  const std::size_t most = page.style().max_rows;
  const std::size_t shown_count = most == 0 ? issues.size() : std::min(issues.size(), most);
  if (issues.empty()) page.line("  no issues: the input was read as it is");
  for (std::size_t i = 0; i < shown_count; i++) write_issue(page, issues[i], report.inputs.size() > 1);
  if (shown_count == issues.size()) return;
  const std::string rest = format_plural(issues.size() - shown_count, "more issue");
  page.line("  " + page.ink(Ink::dim, fmt::format("+ {}: --only quality", rest)));
}

}  // namespace stepscope::report
