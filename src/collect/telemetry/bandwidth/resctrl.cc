#include "collect/telemetry/bandwidth/resctrl.h"

#include <algorithm>
#include <filesystem>

#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry::bandwidth {

namespace fs = std::filesystem;

std::optional<Traffic> L3Traffic::read() {
  const auto all = first_number(all_.read());
  if (!all || *all < 0) return std::nullopt;
  const bool began_anew = *all < last_all_;
  last_all_ = *all;
  Traffic traffic{rising_all_.next(*all), std::nullopt};
  if (const auto local = first_number(local_.read()); local && *local >= 0) {
    // The two are read one after the other, so that their difference shakes: what it falls by is no step back.
    const std::int64_t remote = std::max<std::int64_t>(0, *all - *local);
    most_remote_ = began_anew ? remote : std::max(most_remote_, remote);
    traffic.remote = rising_remote_.next(most_remote_);
  }
  return traffic;
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    std::error_code gone;
    if (at->is_directory(gone)) names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<L3Traffic> traffic_of(const std::string& group) {
  constexpr std::string_view kPrefix = "mon_L3_";
  std::vector<L3Traffic> all;
  const std::string data = group + "/mon_data";
  for (const std::string& name : folders_in(data)) {
    if (name.rfind(kPrefix, 0) != 0) continue;
    std::string folder = data;
    folder.append("/").append(name);
    if (KeptFile(folder + "/mbm_total_bytes").is_open()) all.emplace_back(name.substr(kPrefix.size()), folder);
  }
  return all;
}

}  // namespace stepscope::collect::telemetry::bandwidth
