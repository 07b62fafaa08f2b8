#include "cli/drawing_output.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/terminal.h"
#include "report/format.h"
#include "write/drawing.h"

namespace stepscope::cli {
namespace {

std::string number(std::uint64_t count) { return report::format_count(static_cast<std::int64_t>(count)); }

Result<void> has_nodes(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.nodes.size() > 0) return {};
  }
  return fail({ErrorKind::unsupported, "holds no execution trace and no Chakra file, so there is no graph to draw",
               run.path, std::nullopt,
               "Record one with stepscope run --with execution-trace; the calls of a timeline: stepscope convert --to "
               "folded, or report --only annotations"});
}

std::string summary_of(const graph::DrawnGraph& drawn) {
  std::uint64_t waits = drawn.waits_inside + drawn.waits_omitted;
  for (const graph::DrawnArrow& arrow : drawn.arrows) waits += arrow.waits;
  std::string text = report::format_plural(drawn.nodes, "node");
  if (drawn.collapsed()) text += fmt::format(" collapsed into {}", report::format_plural(drawn.boxes.size(), "box"));
  if (drawn.waits_inside > 0) {
    text += fmt::format("; {} of {} waits are between nodes of one box", number(drawn.waits_inside), number(waits));
  }
  if (drawn.waits_omitted > 0) {
    text += fmt::format("; {} of {} waits have no arrow, as too few go the same way", number(drawn.waits_omitted),
                        number(waits));
  }
  return text + "\n";
}

// What the readers could not read is not in the picture either; true: there is something.
bool tell_losses(const Run& run) {
  bool lost = false;
  for (const Trace& trace : run.traces) {
    for (const Issue& issue : trace.issues) {
      if (issue.severity != Severity::lost || trace.nodes.size() == 0) continue;
      print_notice(issue.sentence);
      lost = true;
    }
  }
  return lost;
}

Result<int> draw_file(const DrawingOptions& options) {
  const auto format = write::drawing_format(options.format, options.output);
  if (!format) return fail(format.error());
  ProgressLine progress;
  const auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output); !kept) return fail(kept.error());
  if (auto there = has_nodes(*run); !there) return fail(there.error());
  progress.show("drawing " + options.output, -1);
  const graph::DrawnGraph drawn = graph::draw_graph(*run, options.boxes);
  if (auto written = write::write_drawing(drawn, *format, options.output, options.seconds); !written)
    return fail(written.error());
  progress.erase();
  const std::string summary = summary_of(drawn);
  if (options.output == "-") {
    write_stderr(summary);
  } else if (auto told = write_stdout(summary); !told) {
    return fail(told.error());
  }
  return static_cast<int>(tell_losses(*run) ? kPartial : kOk);
}

}  // namespace

int draw(const DrawingOptions& options) {
  const auto code = draw_file(options);
  return code ? *code : refused(code.error());
}

}  // namespace stepscope::cli
