// Diff: what changed between two runs, whether it is more than noise, and what the change of the step consists of.
//
// Both runs are derived. Medians over the whole steps of all ranks are compared; a row is significant when its change
// survives a false-discovery rate of 5 % over all rows (the step: a test of its own) and exceeds max(1 % of the step,
// the noise between runs). The change of the step is explained by the critical paths of both sides: they hold every
// instant of every step once, so the changes of their parts add up to the change of the whole.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::diff {

// "step>3%", "kernel:gemm>0.5ms": fails when the named row grew by more, and by more than its noise. Only that row is
// looked at.
struct Gate {
  std::string text;
  std::string level = "step", name;  // of a row; the name is a part of its name, in any case of letters
  double limit = 0;
  bool relative = true;  // limit is a share; else ns
};

struct GateResult {
  Gate gate;
  std::optional<bool> failed;  // unknown: it cannot be told
  std::string sentence;        // says why
};

struct Options {
  std::vector<std::string> levels;  // tables wanted: phase, module, operator, kernel, collective; empty: all
  std::vector<Gate> gates;
  std::vector<const Run*> again;  // repeats of A: what they differ by is the noise between runs
  std::string name_a, name_b;     // what readers call the runs; empty: A and B
};

struct Difference {
  Answer answer;
  std::vector<GateResult> gates;
};

std::span<const std::string_view> level_names();  // that a table can be made of
Result<Gate> parse_gate(std::string_view text);

Result<Difference> diff(const Run& a, const Run& b, const Options& options);

}  // namespace stepscope::diff
