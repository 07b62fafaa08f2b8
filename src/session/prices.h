// Prices of findings: what fixing each would be worth, and all of them together; and their order by it.
#pragma once

#include "model/answer.h"
#include "session/player.h"

namespace stepscope::session {

// Every finding that says what its fix would change gets a gain, or the reason why it has none; the overview, where it
// is among the answers, the gain of all of them together.
void price_findings(Player& player, Report& report);

// Fills Report::by_worth.
void put_by_worth(Report& report);

}  // namespace stepscope::session
