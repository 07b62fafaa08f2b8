// Which rows of one side belong to which of the other: by structure, not by name alone.
//
// From the surest to the least sure, each on what the ones before left over:
//   same           equal name, shape and place (the op around it)
//   moved          equal name and shape, another place
//   shape changed  equal name and place, another shape
//   fused          one side has a kernel whose name lists the ops of several of the other side (Inductor's names)
//   renamed        equal place, similar name; or the only ones left at that place, as often per step
//   replaced       several at one place instead of several others: compared as one
// What is left exists on one side only. Places are followed through renamed ops.
#pragma once

#include <string_view>
#include <vector>

#include "diff/side.h"

namespace stepscope::diff {

enum class Match : std::uint8_t { same, moved, shape_changed, fused, renamed, replaced, only_a, only_b };
std::string_view to_string(Match match);

struct Pair {
  Level level = Level::step;
  Match match = Match::same;
  std::vector<std::uint32_t> a, b;  // indexes of entities
};

std::vector<Pair> pair_up(const Side& a, const Side& b, const StringPool& names);

// How alike two names are, 0..1: the share of their words that they have in common.
double likeness(std::string_view a, std::string_view b);

}  // namespace stepscope::diff
