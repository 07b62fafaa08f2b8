// Contract of the compatible modes: the answers of another tool, literally, from our traces. One mode per tool, one
// list per mode (MODE/analyses.list), one file per answer.
//
// Literal means: that tool's classes, windows, rounding, column names and units (microseconds where it has them), its
// known defects included. docs/hta.md names them and says what the ordinary answers do instead. Only where the other
// tool ends in an exception does the mode answer, with a note.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::compat {

struct Analysis;

namespace hta {
struct Tables;                         // hta/table.h
std::span<const Analysis> analyses();  // from hta/analyses.list, in that order
}  // namespace hta

namespace tensorboard {
std::span<const Analysis> analyses();  // from tensorboard/analyses.list
}  // namespace tensorboard

// An argument of the other tool's function that decides what its answer says, with that tool's default.
struct Argument {
  std::string_view name, fallback, meaning;
};

struct Options {
  std::string mode;  // "hta", "tensorboard"; empty: the ordinary answers
  bool include_last_step = false;
  std::map<std::string, std::string, std::less<>> arguments;  // those that were given
};

// The arguments of slices' events, name and JSON text, for what only one answer needs and the model does not keep.
using EventArguments = std::vector<std::pair<std::string, std::string>>;
using ReadArguments =
    std::function<Result<std::vector<EventArguments>>(const Trace& trace, std::span<const SliceId> slices)>;

class Input {
 public:
  Input(const Run& run, Options options, ReadArguments read)
      : run_(run), options_(std::move(options)), read_(std::move(read)) {}

  const Run& run() const { return run_; }
  const Options& options() const { return options_; }
  const hta::Tables& tables() const { return *tables_; }  // mode hta only
  void take(std::shared_ptr<const hta::Tables> tables) { tables_ = std::move(tables); }
  Result<std::vector<EventArguments>> event_arguments(const Trace& trace, std::span<const SliceId> slices) const {
    return read_(trace, slices);
  }

  // The argument as given, else its default. The names and the numbers were checked by prepare().
  std::string_view argument(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;

 private:
  const Run& run_;
  Options options_;
  ReadArguments read_;
  std::shared_ptr<const hta::Tables> tables_;
};

struct Analysis {
  std::string_view name;     // as the other tool's function, without "get_"
  std::string_view summary;  // the question it answers
  // What stands in the answer but its name and summary.
  Result<Answer> (*find)(const Input& input);

  Result<Answer> run(const Input& input) const { return titled(find(input), name, summary); }
};

std::span<const Argument> arguments();
std::vector<std::string_view> mode_names();
// The analyses of a mode; a usage error for a mode that does not exist.
Result<std::span<const Analysis>> analyses(std::string_view mode);
// Checks mode and arguments and makes, once, what all analyses of the mode share.
Result<Input> prepare(const Run& run, const Options& options, ReadArguments read);

}  // namespace stepscope::compat
