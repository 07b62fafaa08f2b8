// Logging among the steps: code that writes lines, and numbers that are made for nothing but to be written.
#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "diagnose/summaries.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kLogLess = "Log every 100 steps, and without flush";

void find_summary(const Case& about, const Summary& one, std::vector<Diagnosis>& out) {
  Gathered work_of(about);
  for (const Summary::Part& part : one.parts) {
    for (const Operation& operation : part.operations) {
      work_of.add(operation.nodes, part.trace->name(operation.slice), 0, 0.1);
      work_of.add(operation.after, "code between operators", 0, 0.1);
    }
  }
  if (!work_of.worth_saying()) return;
  Diagnosis found = work_of.diagnosis(
      {.cause = "host",
       .sentence = "The loop makes numbers that nothing but a log uses: " + one.function.function,
       .next = std::string(kLogLess) + "; keep what is measured on tensors until then",
       .doubt = "that nothing else uses them is inferred from the source: what it gives back is dropped"});
  Place& place = found.finding.where;
  place.file = one.call->file;
  place.line = one.call->line;
  place.function = one.caller.function;
  out.push_back(std::move(found));
}

}  // namespace

Cause logging_in_loop_cause() {
  return {"logging_in_loop", "Logging in the loop", [](const Case& about, std::vector<Diagnosis>& out) {
            for (const Summary& one : summaries(about)) find_summary(about, one, out);
            find_code_between(about,
                              {.doing = Doing::logging,
                               .cause = "host",
                               .sentence = "The loop waits while it is logged",
                               .next = kLogLess,
                               .too_often = true},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
