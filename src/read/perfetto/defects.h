// What is wrong in a file, counted, with the place of the first one of each kind.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/issue.h"

namespace stepscope::read::perfetto {

enum class Defect : std::uint8_t {
  broken_packet,
  cut,
  missing_time,
  unknown_clock,
  unknown_text,
  unknown_track,
  unpaired,
  unknown_kind,
  bad_details,
  repaired_text,
  count_,
};

class Defects {
 public:
  void note(Defect defect, std::uint64_t place, std::uint64_t count = 1) {
    Tally& tally = tallies_[static_cast<std::size_t>(defect)];
    if (count == 0) return;
    if (tally.count == 0 || place < tally.place) tally.place = place;
    tally.count += count;
  }
  void report(std::vector<Issue>& issues, const std::string& file) const;

 private:
  struct Tally {
    std::uint64_t count = 0, place = 0;
  };
  std::array<Tally, static_cast<std::size_t>(Defect::count_)> tallies_;
};

}  // namespace stepscope::read::perfetto
