// Which runtime and driver calls start device work, by their names.
#pragma once

#include <string_view>

namespace stepscope::derive {

bool launches_work(std::string_view call_name);

}  // namespace stepscope::derive
