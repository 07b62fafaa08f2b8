// How findings of a report stand to each other: what each is worth, and which say the same.
#pragma once

#include <algorithm>
#include <string_view>

#include "model/answer.h"

namespace stepscope {

// The answer whose findings explain the steps; docs/advice.md.
inline constexpr std::string_view kAdvice = "advice";

// Steps so many times as fast are worth a change.
inline constexpr double kWorthAdvice = 1.03;

// The middle of the gain; 1 where none is known.
inline double worth(const Finding& finding) {
  return finding.gain ? (finding.gain->speedup_low + finding.gain->speedup_high) / 2 : 1;
}

// The part of a step that is to be expected after the fix, between the least and the most: what findings are ordered
// by, since a high end that may not come says less of it than of the speedup. 1 where no gain is known.
inline double expected_step(const Finding& finding) {
  return finding.gain ? (1 / finding.gain->speedup_low + 1 / finding.gain->speedup_high) / 2 : 1;
}

// Why a finding that would change what is computed has no gain.
inline constexpr std::string_view kOffer = "An offer and no fault: it changes what is computed.";
inline bool is_offer(const Finding& finding) { return finding.gain_reason == kOffer; }

// Does another answer say what the advice explains, seen from further away: the same kind of cause?
inline bool repeats_advice(const Report& report, Report::FindingAt at) {
  if (report.answers[at.answer].name == kAdvice) return false;
  const Answer* advice = report.answer(kAdvice);
  return advice != nullptr &&
         std::any_of(advice->findings.begin(), advice->findings.end(), [&](const Finding& explained) {
           return explained.gain && explained.cause == report.finding(at).cause;
         });
}

}  // namespace stepscope
