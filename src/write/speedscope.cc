// speedscope: one evented profile for each host thread and each stream, for speedscope.app.
//
// https://www.speedscope.app/file-format-schema.json. Times are ns from the earliest slice of the run.
#include <algorithm>
#include <map>

#include "base/version.h"
#include "formats/out_file.h"
#include "model/track_stacks.h"
#include "report/json_writer.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

using report::JsonWriter;

struct Frames {
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<std::string> names;

  std::size_t of(std::string_view name) {
    const auto known = index.find(name);
    if (known != index.end()) return known->second;
    names.emplace_back(name);
    return index.emplace(names.back(), names.size() - 1).first->second;
  }
};

std::int64_t first_start(const Run& run) {
  std::int64_t first = INT64_MAX;
  for (const Trace& trace : run.traces) {
    for (const std::int64_t start_ns : trace.slices.start_ns) first = std::min(first, start_ns);
  }
  return first;
}

bool on_stream_or_host(const Trace& trace, SliceId slice) {
  return is_host_work(trace, slice) || is_device_work(trace.kind(slice));
}

// Empty where nothing ran on the track.
std::string profile_of(const Trace& trace, std::size_t track, const std::string& name, std::int64_t zero_ns,
                       Frames& frames) {
  std::string events;
  std::int64_t first = 0, last = 0;
  const auto add = [&](char kind, SliceId slice, std::int64_t at_ns) {
    if (events.empty()) first = at_ns - zero_ns;
    last = at_ns - zero_ns;
    events += (events.empty() ? "" : ",\n") + std::string("{\"type\": \"") + kind +
              "\", \"frame\": " + std::to_string(frames.of(trace.name(slice))) + ", \"at\": " + std::to_string(last) +
              "}";
  };
  visit_stacks(trace, track, on_stream_or_host,
               {[&](SliceId slice, std::int64_t at_ns) { add('O', slice, at_ns); },
                [&](SliceId slice, std::int64_t at_ns) { add('C', slice, at_ns); }});
  if (events.empty()) return {};
  JsonWriter json;
  json.begin_object(JsonWriter::Layout::line).key("type").text("evented").key("name").text(name);
  json.key("unit").text("nanoseconds").key("startValue").number(first).key("endValue").number(last);
  json.key("events").raw("[\n" + events + "\n]").end_object();
  return json.take();
}

Result<void> write_speedscope(const Run& run, const std::string& out, const WriteOptions& options) {
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  JsonWriter head;
  head.text("stepscope " + std::string(version()));
  file->add("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\": " + head.take() +
            ",\n\"profiles\": [");
  Frames frames;
  const std::int64_t zero_ns = first_start(run);
  bool first = true;
  for (const Trace& trace : run.traces) {
    for (std::size_t track = 0; track < trace.tracks.size(); track++) {
      std::string name = track_label(trace, track);
      if (run.traces.size() > 1) name = lane_name(trace.rank.rank, name, options);
      const std::string profile = profile_of(trace, track, name, zero_ns, frames);
      if (profile.empty()) continue;
      file->add((first ? "\n" : ",\n") + profile);
      first = false;
    }
  }
  file->add("\n],\n\"shared\": {\"frames\": [");
  for (const std::string& name : frames.names) {
    JsonWriter text;
    text.text(name);
    file->add((&name == frames.names.data() ? "\n{\"name\": " : ",\n{\"name\": ") + text.take() + "}");
  }
  file->add("\n]}}\n");
  return file->finish();
}

}  // namespace

Writer speedscope_writer() {
  return {"speedscope", "host threads and streams as stacks over time, for speedscope.app; not telemetry", false, false,
          write_speedscope};
}

}  // namespace stepscope::write
