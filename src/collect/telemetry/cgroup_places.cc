#include "collect/telemetry/cgroup_places.h"

#include <algorithm>
#include <filesystem>

#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/lines.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

bool has_word(std::string_view commas, std::string_view word) {
  while (!commas.empty()) {
    const std::size_t end = commas.find(',');
    if (commas.substr(0, end) == word) return true;
    commas.remove_prefix(end == commas.npos ? commas.size() : end + 1);
  }
  return false;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    if (end != 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(end == path.npos ? path.size() : end + 1);
  }
  return parts;
}

// The way from `root` down to `path`, "" for the same. Both are as seen from our cgroup name space, so that they may
// begin with "..": then what is below a root above us is known only where the path goes up as far.
std::optional<std::string> below(std::string_view path, std::string_view root) {
  const auto parts = parts_of(path), above = parts_of(root);
  if (above.size() > parts.size() || !std::equal(above.begin(), above.end(), parts.begin())) return std::nullopt;
  std::string out;
  for (std::size_t i = above.size(); i < parts.size(); i++) {
    if (parts[i] == "..") return std::nullopt;
    out.append("/").append(parts[i]);
  }
  return out;
}

// The cgroup of all has no limits, and its numbers are the machine's. A path does not tell, since in a name space each
// root is "/": only the true one has these files, or lacks them.
bool is_whole_machine(const std::string& folder, bool unified, std::error_code& code) {
  return unified ? !fs::exists(folder + "/cgroup.type", code) : fs::exists(folder + "/release_agent", code);
}

// What a person has of an id of 64 digits is its begin.
std::string with_short_numbers(std::string_view part) {
  constexpr std::size_t kLong = 20, kKept = 12;
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  std::string out;
  while (!part.empty()) {
    const std::size_t digits = std::min(part.find_first_not_of(kDigits), part.size());
    out.append(part.substr(0, digits > kLong ? kKept : digits));
    part.remove_prefix(digits);
    const std::size_t others = std::min(part.find_first_of(kDigits), part.size());
    out.append(part.substr(0, others));
    part.remove_prefix(others);
  }
  return out;
}

}  // namespace

CgroupPlaces::CgroupPlaces(const Roots& roots) : proc_(roots.proc) {
  KeptFile mountinfo(proc_ + "/self/mountinfo");
  for_each_line(mountinfo, [&](std::string_view line) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) return;
    std::string_view tail = line.substr(dash + 3);
    const std::string_view type = next_word(tail);
    if (type != "cgroup" && type != "cgroup2") return;
    next_word(tail);  // its source
    const std::string_view options = next_word(tail);
    for (int i = 0; i < 3; i++) next_word(line);  // numbers
    const std::string root = unescaped(next_word(line)), folder = unescaped(next_word(line));
    if (folder.empty()) return;
    mounts_.push_back({root, folder == "/" ? "" : folder, std::string(options), type == "cgroup2"});
  });
}

std::optional<CgroupPlace> CgroupPlaces::place(std::string_view path, std::string_view controller, bool unified) const {
  for (const Mount& mount : mounts_) {
    if (mount.unified != unified || (!unified && !has_word(mount.options, controller))) continue;
    const auto way = below(path, mount.root);
    if (!way) continue;
    const std::string folder = mount.folder + *way;
    std::error_code code;
    if (!fs::is_directory(folder, code) || is_whole_machine(folder, unified, code)) continue;
    return CgroupPlace{folder, mount.folder, std::string(path), unified};
  }
  return std::nullopt;
}

std::optional<CgroupPlace> CgroupPlaces::find(std::string_view text, std::string_view controller) const {
  std::string_view unified;
  while (!text.empty()) {  // NUMBER:CONTROLLERS:PATH, and 0::PATH for version 2
    const std::string_view line = next_line(text);
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (controllers.empty() && line.starts_with("0:")) unified = path;
    if (has_word(controllers, controller)) return place(path, controller, false);
  }
  return unified.empty() ? std::nullopt : place(unified, controller, true);
}

std::vector<std::string> CgroupPlaces::texts_of(const std::vector<Group>& groups) const {
  std::vector<std::string> texts;
  const auto look = [&](const std::string& pid) {
    if (texts.size() == kMostPlaces) return;
    KeptFile file(proc_ + "/" + pid + "/cgroup");
    const std::string_view text = file.read();
    if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) texts.emplace_back(text);
  };
  for (const Group& group : groups) {
    for (const Member& member : group.members) look(std::to_string(member.pid));
  }
  if (groups.empty()) look("self");
  return texts;
}

std::vector<CgroupPlace> CgroupPlaces::find_all(const std::vector<std::string>& texts,
                                                std::string_view controller) const {
  std::vector<CgroupPlace> all;
  for (const std::string& text : texts) {
    auto found = find(text, controller);
    if (found && std::find(all.begin(), all.end(), *found) == all.end()) all.push_back(std::move(*found));
  }
  return all;
}

std::vector<std::string> with_ancestors(const CgroupPlace& place) {
  std::vector<std::string> all{place.folder};
  while (all.back().size() > place.mount.size()) {
    const std::size_t cut = all.back().rfind('/');
    if (cut == std::string::npos || cut < place.mount.size()) break;
    all.push_back(all.back().substr(0, cut));
  }
  return all;
}

const std::string& CgroupNames::of(const CgroupPlace& place) {
  const auto known = by_path_.find(place.path);
  if (known != by_path_.end()) return known->second;
  constexpr std::size_t kLong = 40;
  const auto parts = parts_of(place.path);
  std::string name;
  for (std::size_t i = parts.size(); i-- > 0;) {
    const std::string longer = "/" + with_short_numbers(parts[i]) + name;
    if (!name.empty() && longer.size() > kLong) {
      name.insert(0, "/…");
      break;
    }
    name = longer;
  }
  name = "cgroup " + (name.empty() ? "/" : name);
  const auto is_taken = [&](const std::string& wanted) {
    return std::any_of(by_path_.begin(), by_path_.end(), [&](const auto& one) { return one.second == wanted; });
  };
  std::string wanted = name;
  for (int i = 2; is_taken(wanted); i++) wanted = name + " (" + std::to_string(i) + ")";
  return by_path_.emplace(place.path, wanted).first->second;
}

}  // namespace stepscope::collect::telemetry
