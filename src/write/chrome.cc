// chrome: the JSON of Chrome trace events, with the argument names that Kineto uses, so that every tool that reads
// torch's traces reads it, and stepscope reads the same model from it. Gzip where the name ends in ".gz".
//
// Several ranks go into one file: processes get new numbers, lanes are named after their rank, times are aligned, flow
// ids are made distinct, and what cannot be told from the events stands in members "stepscope_rank_I", from which the
// reader gives the ranks back. Arguments that the model does not hold are not written.
#include "formats/out_file.h"
#include "write/chrome/event_writer.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

using namespace chrome;

void add_events(formats::OutFile& file, EventWriter& writer, bool& first) {
  writer.each_event([&](std::string_view event) {
    file.add(first ? "\n" : ",\n");
    file.add(event);
    first = false;
  });
}

Result<void> write_chrome(const Run& run, const std::string& out, const WriteOptions& options) {
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  const bool merged = run.traces.size() > 1;
  file->add("{");
  if (!merged) file->add(own_members(run.traces[0]));
  if (merged) file->add(merge_members(run));
  file->add("\"traceEvents\": [");
  bool first = true;
  for (std::size_t i = 0; i < run.traces.size(); i++) {
    EventWriter writer(run.traces[i], merged ? Lanes::merged(run, i, options) : Lanes::own());
    add_events(*file, writer, first);
  }
  file->add("\n]}\n");
  return file->finish();
}

}  // namespace

Writer chrome_writer() {
  return {"chrome", "Chrome trace events as Kineto writes them; several ranks in one file, telemetry as counters",
          false, true, write_chrome};
}

}  // namespace stepscope::write
