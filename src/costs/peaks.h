// What devices can do at most, by their names (peaks.txt says the format).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stepscope::costs {

struct DevicePeaks {
  std::vector<std::string> words;  // of its name, in small letters
  double gb_per_s = 0;
  std::vector<std::pair<std::string, double>> tflop_per_s;  // by element type
  std::string source;

  // Of float8_e4m3fn that of float8. Nothing: the device has none, or the table does not know it.
  std::optional<double> flop_per_s(std::string_view type) const;
};

// `file` is named in errors; empty: the built-in table.
Result<std::vector<DevicePeaks>> parse_peaks(std::string_view text, const std::string& file);

// The first line that fits, as one named "any" always does; nullptr: none. `device` may be empty: not recorded.
const DevicePeaks* peaks_of(const std::vector<DevicePeaks>& table, std::string_view device);

std::string_view built_in_peaks();  // peaks.txt, compiled in

}  // namespace stepscope::costs
