#include "base/short_names.h"

#include <filesystem>
#include <map>

namespace stepscope {
namespace fs = std::filesystem;
namespace {

// The last `parts` parts of a path.
std::string end_of(const fs::path& path, std::size_t parts) {
  fs::path end;
  fs::path rest = (path.lexically_normal() / "").parent_path();  // without a slash at its end
  for (; parts > 0 && !rest.filename().empty(); parts--, rest = rest.parent_path()) {
    end = end.empty() ? rest.filename() : rest.filename() / end;
  }
  return end.empty() ? path.string() : end.string();
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  constexpr std::size_t kMostParts = 8;
  std::vector<std::string> names;
  std::map<std::string, std::size_t> same;
  for (std::size_t i = 0; i < paths.size(); i++) names.push_back(end_of(paths[i], 1)), same[names[i]]++;
  for (std::size_t parts = 2; parts <= kMostParts && same.size() < paths.size(); parts++) {
    std::map<std::string, std::size_t> now;
    for (std::size_t i = 0; i < paths.size(); i++) {
      if (same[names[i]] > 1) names[i] = end_of(paths[i], parts);
      now[names[i]]++;
    }
    same = std::move(now);
  }
  return names;
}

}  // namespace stepscope
