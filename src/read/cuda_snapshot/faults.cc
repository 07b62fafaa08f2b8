#include "read/cuda_snapshot/faults.h"

#include <algorithm>

namespace stepscope::read::cuda {
namespace {

constexpr std::size_t kShown = 8;

struct Telling {
  std::string_view code, sentence, advice;
  Severity severity;
};

constexpr std::array<Telling, static_cast<std::size_t>(FaultKind::count)> kTellings{{
    {"snapshot_unknown_keys", "keys that are not known were left out", "", Severity::info},
    {"snapshot_unknown_words", "words that are not known stand for an action or state", "", Severity::info},
    {"snapshot_not_recorded", "values are missing that the version of torch did not write", "", Severity::info},
    {"snapshot_missing_keys", "values are missing that every version of torch writes",
     "Check what wrote or changed the file", Severity::lost},
    {"snapshot_wrong_types", "values are not of the type that their key has, and were left empty",
     "Check what wrote or changed the file", Severity::lost},
    {"snapshot_rows_outside", "rows stand in no list of the snapshot and were left out",
     "Check what wrote or changed the file", Severity::lost},
}};

}  // namespace

void Faults::note(FaultKind kind, Shape shape, StringId what, std::uint64_t offset, std::uint64_t count) {
  auto found = faults_.find({kind, shape, what});
  if (found == faults_.end()) {
    if (faults_.size() >= kMostNames) what = StringId::none;
    found = faults_.try_emplace({kind, shape, what}, Fault{0, offset}).first;
  }
  found->second.count += count;
  found->second.offset = std::min(found->second.offset, offset);
}

std::vector<Issue> Faults::issues(const StringPool& strings, const std::string& path) const {
  std::vector<Issue> issues;
  FaultKind last = FaultKind::count;
  std::size_t shown = 0;
  for (const auto& [key, fault] : faults_) {  // sorted by kind
    const auto& [kind, shape, what] = key;
    if (kind != last) {
      const Telling& telling = kTellings[static_cast<std::size_t>(kind)];
      issues.push_back({std::string(telling.code), telling.severity, std::string(telling.sentence),
                        std::string(telling.advice), 0, path, fault.offset, std::nullopt});
      last = kind;
      shown = 0;
    }
    Issue& issue = issues.back();
    issue.count += fault.count;
    issue.offset = std::min(*issue.offset, fault.offset);
    if (shown++ < kShown) {
      issue.sentence += (shown == 1 ? ": " : ", ") + std::string(keys_of(shape).name);
      if (what != StringId::none) issue.sentence += " " + std::string(strings[what].substr(0, 100));
      issue.sentence += " (" + std::to_string(fault.count) + ")";
    } else if (shown == kShown + 1) {
      issue.sentence += ", …";
    }
  }
  return issues;
}

}  // namespace stepscope::read::cuda
