#include "model/copy_way.h"

#include <algorithm>
#include <array>

namespace stepscope {

CopyWay copy_way(std::string_view name) {
  constexpr std::array<std::string_view, 5> kDirections{"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"};
  CopyWay out;
  const auto found = std::find_if(kDirections.begin(), kDirections.end(),
                                  [&](std::string_view d) { return name.find(d) != std::string_view::npos; });
  if (found != kDirections.end()) out.direction = *found;
  const std::size_t open = name.find('('), close = name.find(')', open), arrow = name.find(" -> ", open);
  if (open == std::string_view::npos || close == std::string_view::npos || arrow >= close) return out;
  out.source = name.substr(open + 1, arrow - open - 1);
  out.destination = name.substr(arrow + 4, close - arrow - 4);
  return out;
}

}  // namespace stepscope
