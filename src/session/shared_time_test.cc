// What another answer would change is told beside what advice explains of the same time.
#include "session/shared_time.h"

#include <doctest/doctest.h>

#include <utility>

#include "diagnose/diagnosis.h"
#include "model/finding_order.h"

using namespace stepscope;

namespace {

using Row = std::vector<Value>;

Row row(std::int64_t rank, std::string_view part, std::int64_t time_ns, Value explained_by) {
  return {rank, std::string(part), Value("forward"), Value(), time_ns, Value(), std::move(explained_by)};
}

Finding finding(std::string id, Change change = {}) {
  return {.id = std::move(id), .gain = Gain{.speedup_low = 1.1, .speedup_high = 1.2}, .changes = {std::move(change)}};
}

// Advice that explains 60 of 80 ns of code of the host by two findings, and 5 of 100 ns of communication and 1 of 40 ns
// of the loader by one.
Report report_with(Finding of_another_answer) {
  Answer advice{.name = std::string(kAdvice)};
  advice.tables.push_back(
      {.name = "partition",
       .rows = {row(0, diagnose::part::kCommunication, 95, {}), row(1, diagnose::part::kOperators, 40, "hidden_sync"),
                row(1, diagnose::part::kBetweenOperators, 20, "python_in_step hidden_sync"),
                row(0, diagnose::part::kLaunches, 20, {}), row(0, diagnose::part::kDataLoader, 39, {}),
                row(0, diagnose::part::kDataLoader, 1, "python_in_step"),
                row(0, diagnose::part::kCommunication, 5, "python_in_step")}});
  // Two of one id, and one whose id is part of another's.
  advice.findings = {finding("python_in_step"), finding("hidden_sync"), finding("hidden_sync"), finding("sync")};
  Answer other{.name = "idle"};
  other.findings.push_back(std::move(of_another_answer));
  Report report;
  report.answers = {std::move(advice), std::move(other)};
  return report;
}

const Finding& told(Report& report) {
  session::say_what_advice_explains(report);
  return report.answers.back().findings.front();
}

}  // namespace

TEST_CASE("advice: a finding of another answer says which of advice explain the same time") {
  Report host = report_with(finding("host_bound_idle", {.kind = ChangeKind::scale, .target = "host:*", .value = 0.5}));
  const Finding& shared = told(host);
  REQUIRE(shared.evidence.size() == 2);
  CHECK(shared.evidence[0].text == "Of where it may save, explained by python_in_step");
  CHECK(shared.evidence[0].value == Value(21.0 / 120));
  CHECK(shared.evidence[1].text == "Of where it may save, explained by hidden_sync");
  CHECK(shared.evidence[1].value == Value(0.5));
  CHECK(shared.evidence[1].query ==
        "select * from advice_partition where part in ('operators on the host', 'launches', 'code between operators', "
        "'data loader') and ' ' || explained_by || ' ' like '% hidden_sync %'");

  Report waits = report_with(finding("synchronization_idle", {.kind = ChangeKind::no_waits}));
  REQUIRE(told(waits).evidence.size() == 2);
  CHECK(waits.answers[1].findings[0].evidence[1].value == Value(0.75));

  Report level = report_with(finding("straggler", {.kind = ChangeKind::level_rank, .rank = 1}));
  REQUIRE(told(level).evidence.size() == 2);
  CHECK(level.answers[1].findings[0].evidence[1].value == Value(1.0));  // of rank 1 alone
}

TEST_CASE(
    "advice: what shares next to nothing with a finding of another answer is not told, and neither without a gain") {
  Report overlap = report_with(finding("exposed_communication", {.kind = ChangeKind::overlap}));
  REQUIRE(told(overlap).evidence.size() == 1);  // 5 of the 26 ns that python_in_step explains
  CHECK(overlap.answers[1].findings[0].evidence[0].value == Value(0.05));

  Report loader = report_with(finding("dataloader_wait", {.kind = ChangeKind::data_loader}));
  CHECK(told(loader).evidence.empty());  // 1 of these

  Finding no_gain = finding("host_bound_idle", {.kind = ChangeKind::scale, .target = "host:*", .value = 0.5});
  no_gain.gain.reset();
  Report none = report_with(std::move(no_gain));
  CHECK(told(none).evidence.empty());

  Report no_advice = report_with(finding("host_bound_idle", {.kind = ChangeKind::no_waits}));
  no_advice.answers.erase(no_advice.answers.begin());
  CHECK(told(no_advice).evidence.empty());
}
