// Which step a row of an answer is about, and when that step was: the steps of all ranks of a run by name and number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace stepscope::write {

// told: the input says the time of day. Else it is that of its file: a recording ends then, and a step of which no
// moment is known was then; 0 is then a file that is gone.
struct StepMoment {
  std::int64_t unix_ns = 0;
  bool told = false;
};

class KnownSteps {
 public:
  explicit KnownSteps(const Run& run);

  // The number of the `nth` (from 0) of the rank's steps with this name. Steps that share a name are told apart by
  // their order, so nothing unless the rank has `count` of them; nothing too for a step without a number.
  std::optional<std::int64_t> number(std::int64_t rank, const std::string& name, std::size_t nth,
                                     std::size_t count) const;

  // When the step ended, on the run's clock.
  StepMoment ended(std::int64_t rank, std::int64_t number) const;

 private:
  void add_history(const Run& run);
  void add_recorded(const Run& run);
  void add_memory(const Run& run);

  std::map<std::pair<std::int64_t, std::string>, std::vector<std::int64_t>> numbers_;  // by rank and name
  std::map<std::pair<std::int64_t, std::int64_t>, StepMoment> ended_;                  // by rank and number
  std::map<std::int64_t, std::string> files_;                                          // of each rank the first
};

}  // namespace stepscope::write
