// The five pages of InternEvo's memory profiler: params_, grads_, os_ and activation_memory_sunburst.html and
// summary_sunburst.html. Each is the page of the report with the answer memory_state and of it one tree alone, so that
// it stands by itself and asks no network.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"

namespace stepscope::report {

// Names of the files, in the order in which they are made.
std::span<const std::string_view> memory_page_names();

// Writes the pages into `folder`, from a report that holds the answer memory_state of one rank; each whole or not at
// all. Fails where this build has no page (to_html), or a file cannot be written.
Result<void> write_memory_pages(const Report& report, const std::string& folder);

}  // namespace stepscope::report
