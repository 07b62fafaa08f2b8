// One stacked bar of shares with its legend: which part of a whole is what, at a glance.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/page.h"

namespace stepscope::report {

struct BarPart {
  std::string name;
  double share = 0;   // of the whole, 0..1
  std::string label;  // for the legend: "58.0 %"
};

// Cells of the bar in the given width; parts are rounded so that the cells add up and a part of a cell or more shows.
std::string draw_bar(const Page& page, std::span<const BarPart> parts, std::size_t width);

// "█ compute 58.0 %" for each part; parts named "idle: cause" share one mark and stand together.
std::vector<std::string> legend(const Page& page, std::span<const BarPart> parts);

}  // namespace stepscope::report
