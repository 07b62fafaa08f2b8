#include "model/issue.h"

#include <algorithm>

namespace stepscope {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::info: return "info";
    case Severity::repaired: return "repaired";
    case Severity::lost: return "lost";
  }
  return "info";
}

void add_issue(std::vector<Issue>& issues, Issue issue) {
  const auto same = [&](const Issue& other) { return other.code == issue.code && other.file == issue.file; };
  if (auto found = std::find_if(issues.begin(), issues.end(), same); found != issues.end()) {
    found->count += issue.count;
  } else {
    issues.push_back(std::move(issue));
  }
}

}  // namespace stepscope
