// How long, as people write it: "120us", "500ms", "5s", "2m", "1.5h". One reading of it for all options and settings.
#pragma once

#include <optional>
#include <string_view>

namespace stepscope {

// What a number without a unit means. Where some people would take it for ms and others for seconds, it is refused.
enum class BareNumber { seconds, refused };

// Seconds, finite and not negative; nullopt: the text is none.
std::optional<double> read_duration(std::string_view text, BareNumber bare);

}  // namespace stepscope
