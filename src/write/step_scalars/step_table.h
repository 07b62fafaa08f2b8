// Which column of a table of steps says what. What stands before the column `step` says whose step it is; each measure
// behind it is a curve.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/answer.h"

namespace stepscope::write {

struct StepTable {
  std::size_t step = 0;
  std::optional<std::size_t> rank, number, partial;
  std::vector<std::size_t> labels, measures;  // labels: whose step it is, beside the rank

  // "cuda:0/", with what is unknown named so; empty without labels.
  std::string label(const std::vector<Value>& row) const;
  // The step as its row names it.
  std::string name(const std::vector<Value>& row) const;
};

// Nothing: the table is none of steps.
std::optional<StepTable> step_table(const Table& table);

// "wall_ns" is "wall_s" in seconds; all else is written as it is.
std::string curve_name(const TableColumn& column);
// Nothing: unknown, or more than an event file can hold (f32).
std::optional<double> curve_value(const Value& value, Unit unit);

}  // namespace stepscope::write
