#include "base/did_you_mean.h"

#include <algorithm>

namespace stepscope {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); i++) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); j++) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); i++) {
    for (std::size_t j = 1; j <= b.size(); j++) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

Error unknown_name(std::string_view what, std::string_view name, std::span<const std::string_view> known) {
  std::string nearest, list;
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const bool prefix = !name.empty() && candidate.starts_with(name);
    const std::size_t distance = prefix ? 1 : edit_distance(name.substr(0, 64), candidate.substr(0, 64));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
    list += (list.empty() ? "" : ", ") + std::string(candidate);
  }
  std::string message = "unknown " + std::string(what) + " '" + std::string(name) + "'";
  if (!nearest.empty()) message += "; did you mean '" + nearest + "'?";
  return {ErrorKind::usage, message, "", std::nullopt, "Choose from: " + list};
}

}  // namespace stepscope
