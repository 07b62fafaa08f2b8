// Changes as text: options of `stepscope what-if`, and what the page sends, one a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/change.h"

namespace stepscope::session {

// "scale kernel:gemm=0.5": the option as the user writes it, without its dashes.
std::string change_text(const Change& change);

// `option` without its dashes, such as "scale" or "no-waits"; `value` is empty where it takes none. A usage error says
// how it is written. The network of more ranks is not in the text.
Result<Change> read_change(std::string_view option, std::string_view value);

// One change a line, blank lines, "--" before an option and quotes around its value aside, in the order in which they
// work.
Result<std::vector<Change>> read_changes(std::string_view lines);

// Of changes that touch the same time the order matters: what makes more ranks comes after what makes links faster,
// since what the ranks add to the latency is no part that a faster link shortens.
void put_in_order(std::vector<Change>& changes);

}  // namespace stepscope::session
