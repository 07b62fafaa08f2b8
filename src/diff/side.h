// One side of a difference: everything that is compared, as samples per step.
//
// A sample is one whole step of one rank. An entity is one row that can be compared (a phase, an operator with its
// shapes, a kernel under its operator …) with its values in every sample. Names are normalized (model/normal_name.h)
// and interned in one pool for both sides, so that equal names have equal ids.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/string_pool.h"
#include "diff/noise.h"
#include "model/critical_path.h"
#include "model/trace.h"

namespace stepscope::diff {

enum class Level : std::uint8_t { step, phase, module, op, kernel, collective };
inline constexpr std::size_t kLevels = 6;
std::string_view to_string(Level level);

struct Entity {
  Level level = Level::step;
  StringId name = StringId::none;
  StringId detail = StringId::none;   // phase: host or device; op: shapes; collective: size and group
  StringId context = StringId::none;  // op: the op around it; kernel: the op that launched it
  Values count, time, self, device;   // ns; self and device: of operators only

  // What is tested: the self time of operators, the time of all else.
  const Values& tested() const { return level == Level::op ? self : time; }
};

// Time on the critical path of the steps, by class and name.
struct PathEntity {
  PathClass what = PathClass::unknown;
  StringId name = StringId::none;
  Values time;
};

struct Side {
  std::vector<std::string> kinds;  // of steps, normalized; the samples are of the first
  std::size_t left_out = 0;        // whole steps of other kinds, and cut steps
  Values walls;                    // per sample
  std::vector<Entity> entities;    // [0] is the step
  std::vector<PathEntity> path;
  bool has_device_work = false;
};

// `kind`: the kind of step to compare; empty: the one with most time.
Side side_of(const Run& run, StringPool& names, const std::string& kind);
// Kinds of whole steps with their time.
std::map<std::string, std::int64_t> step_kinds(const Run& run);

}  // namespace stepscope::diff
