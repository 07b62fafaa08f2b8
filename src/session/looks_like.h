// What a file that no reader takes looks like, in words, with the next step.
#pragma once

#include <string>
#include <string_view>

namespace stepscope::session {

struct Look {
  std::string what;  // "an HTML page"
  std::string hint;  // starts with a verb
};

Look looks_like(std::string_view head);

// Of protocols 2 to 5 by its content; others begin as text does, so the name counts too.
bool looks_like_pickle(std::string_view head, std::string_view name);

}  // namespace stepscope::session
