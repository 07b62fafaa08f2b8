// The parts of the terminal report, in the order in which they are shown.
#pragma once

#include <string_view>

#include "report/page.h"

namespace stepscope::report {

// What was read: path, ranks, writers, sizes.
void write_input(Page& page, const Report& report);

// The one-screen overview of the answers that the report holds.
void write_overview(Page& page, const Report& report);

// All scalars of an answer, one a line.
void write_scalars(Page& page, const Answer& answer);
// Of all answers: Report::by_worth, or where that was not made, in the order of the answers.
std::vector<const Finding*> findings_by_worth(const Report& report);
// "gain: steps 1.10× to 1.25× as fast, then bound by compute".
std::string gain_text(const Gain& gain);
// "train.py:48 · in forward · rank 0"; empty: nothing is known of it.
std::string place_text(const Place& where);
// The sentence, then where, its evidence and the next thing to do, indented.
void write_finding(Page& page, const Finding& finding);

// Where the recorded steps are far from the usual ones: that `which` ("gains are") of the usual ones.
void write_recorded(Page& page, const Answer& advice, std::string_view which);

// Answers that could not be made, and why.
void write_failed(Page& page, const Report& report);
// What the answers rest on: links, what was not recorded, and the issues with advice, those that lost data first.
void write_quality(Page& page, const Report& report);
// Where to look further.
void write_next(Page& page, const Report& report);

}  // namespace stepscope::report
