// Tables of what lives at a moment, by class and by stack; of one moment of each device, or of several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/groups.h"
#include "snapshot/views.h"

namespace stepscope::snapshot {

struct HeldShares {
  std::int64_t bytes = 0;          // all that lives, as the program asked for it
  std::int64_t unknown = 0;        // of no class
  std::int64_t uncategorized = 0;  // of no category; some of it has a class all the same
};

class Holdings {
 public:
  // Tables NAME_classes, NAME_evidence and NAME_stacks; `with_event` has the number of the event in each row.
  Holdings(std::string_view name, bool with_event, std::size_t most_rows);

  HeldShares add(const View& view, const State& state, ToldStacks& told);
  // Groups of one kind as a table NAME_KIND of its own.
  Table by(const View& view, const State& state, GroupBy by, ToldStacks& told) const;

  // Appends the tables; those of stacks are cut to the most rows for each moment, with a note.
  void take(Answer& answer);

 private:
  std::vector<TableColumn> columns(std::vector<TableColumn> more) const;
  std::vector<Value> row(const View& view, const State& state, std::vector<Value> cells) const;
  void add_stacks(const View& view, const State& state, const std::vector<Group>& groups, std::int64_t whole,
                  ToldStacks& told);

  std::string name_;
  bool with_event_;
  std::size_t most_rows_;
  Table classes_, evidence_, stacks_;
  std::uint64_t stacks_left_out_ = 0;
};

}  // namespace stepscope::snapshot
