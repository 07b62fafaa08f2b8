// Logging among the steps: code that writes lines, and numbers that are made for nothing but to be written.
#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "diagnose/summaries.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kLogLess = "Log every 100 steps, and without flush";
constexpr double kMostLeft = 0.02;  // of a log that is written every 100 steps, or every 50

void find_summary(const Case& about, const Summary& one, std::vector<Diagnosis>& out) {
  Gathered work_of(about);
  for (const Summary::Part& part : one.parts) {
    for (const Operation& operation : part.operations) {
      work_of.add(operation.nodes, part.trace->name(operation.slice), 0, kMostLeft);
      work_of.add(operation.after, "code between operators", 0, kMostLeft);
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

// Tensors that are turned into text, which torch does number by number: for a log, or for one that nobody sees.
void find_printed_tensors(const Case& about, std::vector<Diagnosis>& out) {
  constexpr std::string_view kToText = "torch/_tensor_str.py";
  Gathered printing(about);
  for (const Trace& trace : timelines(about.run)) {
    for (const Operation& one : about.operations(trace)) {
      const Code code = about.code(trace, one.slice);
      if (code.below(kToText) == nullptr) continue;
      printing.add(one.nodes, trace.name(one.slice), 0, kMostLeft);
      printing.add(one.after, "code between operators", 0, kMostLeft);
    }
  }
  if (!printing.worth_saying()) return;
  Diagnosis found = printing.diagnosis(
      {.cause = "host",
       .sentence = "Tensors are turned into text among the steps",
       .next = "Write tensors every 100 steps, and few of their numbers; in place of an f-string let the log make the "
               "text, which it does only where it is shown: log.debug(\"%s\", tensor)"});
  found.finding.where.op.reset();
  out.push_back(std::move(found));
}

}  // namespace

Cause logging_in_loop_cause() {
  return {"logging_in_loop", "Logging in the loop", [](const Case& about, std::vector<Diagnosis>& out) {
            find_printed_tensors(about, out);
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
