#include "cli/report/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shell_word.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "write/step_scalars.h"

namespace stepscope::cli {
namespace {

std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string written_sentence(const write::StepScalars& scalars, const std::string& folder) {
  std::size_t curves = 0, steps = 0;
  for (const write::RankScalars& rank : scalars.ranks) {
    curves += rank.curves.size();
    steps = std::max(steps, rank.steps.size());
  }
  return fmt::format("wrote {} of {} over {} into {}; see them with: tensorboard --logdir {}", counted(curves, "curve"),
                     counted(scalars.ranks.size(), "rank"), counted(steps, "step"), folder, shell_word(folder));
}

}  // namespace

void add_tensorboard_option(CLI::App& app, std::string& folder) {
  auto* option = app.add_option("--tensorboard", folder,
                                "Write what is known of each step as TensorBoard's event files (docs/tensorboard.md)");
  option->type_name("FOLDER");
  for (const char* other :
       {"--json", "--csv", "--html", "--output", "--rows", "--sort", "--limit", "--group-by", "--compat"}) {
    option->excludes(app.get_option(other));
  }
}

Result<void> write_tensorboard(const Run& run, const Report& report, const std::string& folder) {
  if (folder == "-") {
    return fail({ErrorKind::usage, "TensorBoard reads folders, not standard output", "", std::nullopt,
                 "Name a folder with --tensorboard"});
  }
  const write::StepScalars scalars = write::step_scalars(run, report.answers);
  for (const write::RankScalars& rank : scalars.ranks) {
    if (auto kept = keep_inputs(run, write::event_file_path(folder, rank)); !kept) return kept;
  }
  for (const auto& [name, reason] : report.failed) print_notice(fmt::format("nothing of {}: {}", name, reason));
  for (const std::string& sentence : scalars.left_out) print_notice(sentence);
  if (scalars.ranks.empty()) {
    return fail({ErrorKind::unsupported, "nothing is known of steps that have numbers, so there is no curve to write",
                 run.path, std::nullopt,
                 "Mark steps with prof.step() of torch.profiler or record under stepscope run; with --only, name "
                 "answers with a table of steps, such as steps"});
  }
  if (auto written = write::write_event_files(scalars, folder); !written) return written;
  print_notice(written_sentence(scalars, folder));
  return {};
}

}  // namespace stepscope::cli
