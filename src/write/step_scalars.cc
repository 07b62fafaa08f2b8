#include "write/step_scalars.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "write/step_scalars/known_steps.h"
#include "write/step_scalars/step_table.h"

namespace stepscope::write {
namespace {

// "a, b and 3 more"
std::string listed(const std::vector<std::string>& words) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kMost); i++) text += (i == 0 ? "" : ", ") + words[i];
  return words.size() > kMost ? text + " and " + std::to_string(words.size() - kMost) + " more" : text;
}

constexpr std::int64_t kWholeRun = kAbsent;  // in place of a rank

class Collector {
 public:
  explicit Collector(const Run& run) : known_(run) {}

  void add(const Answer& answer) {
    for (const Table& table : answer.tables) {
      if (const auto columns = step_table(table)) add_table(answer.name, table, *columns);
    }
  }

  void add_history(const Run& run) {
    for (const Trace& trace : run.history) {
      for (const Step& step : trace.steps) {
        if (step.number == kAbsent) continue;
        add_value(trace.rank.rank, {"history/wall_s", "How long the step took, of all steps of the job"}, step.number,
                  static_cast<double>(step.end_ns - step.start_ns) / 1e9);
      }
    }
  }

  StepScalars finish() {
    StepScalars out;
    std::vector<std::string> dated_by_file;
    for (auto& [rank, all] : ranks_) {
      all.out.name = rank == kWholeRun ? "run" : "rank" + std::to_string(rank);
      bool told = true;
      for (const auto& [number, values] : all.steps) {
        const StepMoment when = known_.ended(rank, number);
        told = told && when.told;
        all.out.steps.push_back({number, when.unix_ns, {values.begin(), values.end()}});
      }
      if (!told) dated_by_file.push_back(all.out.name);
      out.ranks.push_back(std::move(all.out));
    }
    tell_left_out(out.left_out);
    if (!dated_by_file.empty()) {
      out.left_out.push_back("the time of day of steps is not known and is that of the file: " + listed(dated_by_file));
    }
    return out;
  }

 private:
  struct RankCurves {
    RankScalars out;
    std::map<std::string, std::size_t> by_tag;
    std::map<std::int64_t, std::map<std::size_t, double>> steps;  // by number, by curve
  };

  void add_table(const std::string& answer, const Table& table, const StepTable& columns) {
    using Key = std::pair<std::int64_t, std::string>;  // rank, and label with the name of the step
    const auto rank_of = [&](const std::vector<Value>& row) {
      const auto* rank = columns.rank ? std::get_if<std::int64_t>(&row[*columns.rank]) : nullptr;
      return rank == nullptr ? kWholeRun : *rank;
    };
    const auto key_of = [&](const std::vector<Value>& row) {
      return Key(rank_of(row), columns.label(row) + columns.name(row));
    };
    std::map<Key, std::size_t> count, seen;
    for (const auto& row : table.rows) count[key_of(row)]++;
    for (const auto& row : table.rows) {
      const Key key = key_of(row);
      const std::size_t nth = seen[key]++;
      if (columns.partial && row[*columns.partial] == Value(true)) {
        cut_.insert({key.first, columns.name(row) + "/" + std::to_string(nth)});
        continue;
      }
      const auto* told = std::get_if<std::int64_t>(&row[columns.number.value_or(columns.step)]);
      const auto number =
          told != nullptr ? std::optional(*told) : known_.number(key.first, columns.name(row), nth, count[key]);
      if (number) {
        add_row(answer, table, columns, row, key.first, *number);
      } else {
        unnumbered_.insert(answer);
      }
    }
  }

  void add_row(const std::string& answer, const Table& table, const StepTable& columns, const std::vector<Value>& row,
               std::int64_t rank, std::int64_t number) {
    for (const std::size_t i : columns.measures) {
      const TableColumn& column = table.columns[i];
      const auto value = curve_value(row[i], column.unit);
      bool& known = any_known_[answer + "/" + curve_name(column)];
      known = known || value;
      if (!value) continue;
      add_value(rank, {answer + "/" + columns.label(row) + curve_name(column), column.meaning}, number, *value);
    }
  }

  void add_value(std::int64_t rank, ScalarCurve curve, std::int64_t number, double value) {
    RankCurves& all = ranks_[rank];
    const auto [at, is_new] = all.by_tag.try_emplace(curve.tag, all.out.curves.size());
    if (is_new) all.out.curves.push_back(std::move(curve));
    if (!all.steps[number].emplace(at->second, value).second) twice_.insert({rank, number});
  }

  void tell_left_out(std::vector<std::string>& told) const {
    const auto tell = [&](std::string_view what, std::size_t steps) {
      if (steps > 0) told.push_back(std::string(what) + std::to_string(steps) + (steps == 1 ? " step" : " steps"));
    };
    tell("left out, as the edge of the recording cuts them: ", cut_.size());
    tell("in two files of one rank, of which the first is written: ", twice_.size());
    if (!unnumbered_.empty()) {
      told.push_back("left out, as they have no number: steps in " + listed({unnumbered_.begin(), unnumbered_.end()}));
    }
    std::vector<std::string> never;
    for (const auto& [curve, known] : any_known_) {
      if (!known) never.push_back(curve);
    }
    if (never.empty()) return;
    told.push_back("unknown for every step, so no curve: " + listed(never) +
                   "; stepscope report --only ANSWER says why");
  }

  KnownSteps known_;
  std::map<std::int64_t, RankCurves> ranks_;
  std::map<std::string, bool> any_known_;               // of each curve: has any step a value?
  std::set<std::pair<std::int64_t, std::string>> cut_;  // rank, and name with its place among those of the name
  std::set<std::string> unnumbered_;                    // answers
  std::set<std::pair<std::int64_t, std::int64_t>> twice_;
};

}  // namespace

StepScalars step_scalars(const Run& run, std::span<const Answer> answers) {
  Collector collector(run);
  for (const Answer& answer : answers) {
    collector.add(answer);
    if (answer.name == "history") collector.add_history(run);  // of which its tables have the longest steps only
  }
  return collector.finish();
}

}  // namespace stepscope::write
