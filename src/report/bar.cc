#include "report/bar.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/text_table.h"

namespace stepscope::report {
namespace {

constexpr std::string_view kIdle = "idle: ";

struct Look {
  std::string_view part;
  std::string_view cell;
  Ink ink;
};

// Work is dark, waiting is light; without colors the four shades tell apart what usually stands side by side.
constexpr std::array kLooks{
    Look{"compute", "█", Ink::good},       Look{"kernel", "█", Ink::good},
    Look{"communication", "▓", Ink::bad},  Look{"communication exposed", "▓", Ink::bad},
    Look{"unclassified", "▒", Ink::plain}, Look{"memory copy", "▒", Ink::accent},
    Look{"memory set", "▒", Ink::accent},  Look{"copy", "▒", Ink::accent},
    Look{"set", "▒", Ink::accent},         Look{"runtime", "▓", Ink::accent},
    Look{"dataloader", "▒", Ink::warning}, Look{"cpu_op", "█", Ink::good},
    Look{"idle", "░", Ink::warning},       Look{"other", "░", Ink::dim},
};
constexpr std::array<std::string_view, 4> kCells{"█", "▓", "▒", "░"};

Look look_of(std::string_view name, std::size_t place) {
  if (name.starts_with(kIdle)) name = "idle";
  const auto found = std::find_if(kLooks.begin(), kLooks.end(), [&](const Look& look) { return look.part == name; });
  return found != kLooks.end() ? *found : Look{name, kCells[place % kCells.size()], Ink::plain};
}

// Largest remainders: cells add up to the bar's share of the width.
std::vector<std::size_t> cells_of(std::span<const BarPart> parts, std::size_t width) {
  std::vector<std::size_t> cells(parts.size());
  double so_far = 0;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < parts.size(); i++) {
    if (std::isfinite(parts[i].share)) so_far += std::clamp(parts[i].share, 0.0, 1.0);
    const auto upto = static_cast<std::size_t>(std::llround(std::min(so_far, 1.0) * static_cast<double>(width)));
    cells[i] = upto - drawn;
    drawn = upto;
  }
  return cells;
}

}  // namespace

std::string draw_bar(const Page& page, std::span<const BarPart> parts, std::size_t width) {
  const auto cells = cells_of(parts, width);
  std::string bar;
  for (std::size_t i = 0; i < parts.size(); i++) {
    const Look look = look_of(parts[i].name, i);
    std::string run;
    for (std::size_t n = 0; n < cells[i]; n++) run += look.cell;
    bar += page.ink(look.ink, run);
  }
  return bar;
}

std::vector<std::string> legend(const Page& page, std::span<const BarPart> parts) {
  std::vector<std::string> items;
  bool idle = false;
  for (std::size_t i = 0; i < parts.size(); i++) {
    const Look look = look_of(parts[i].name, i);
    const bool is_idle = parts[i].name.starts_with(kIdle);
    std::string_view name = parts[i].name;
    std::string item;
    if (is_idle && idle) {
      name.remove_prefix(kIdle.size());
    } else {
      item += page.ink(look.ink, look.cell);
      item.push_back(' ');
    }
    idle = idle || is_idle;
    item += readable_name(name);
    if (!parts[i].label.empty()) item.append(1, ' ').append(page.ink(Ink::strong, parts[i].label));
    items.push_back(item);
  }
  return items;
}

}  // namespace stepscope::report
