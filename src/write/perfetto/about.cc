// The first event of a rank: everything that is known of the recording and has no place among events. In the viewer it
// is one mark on a track "recording"; the reader makes the same trace from it.
#include "write/perfetto/field_writer.h"
#include "write/perfetto/rank_writer.h"

namespace stepscope::write::perfetto {
namespace {

// Overlaps are found anew in what is read back.
std::vector<Issue> as_read(std::vector<Issue> issues) {
  std::erase_if(issues, [](const Issue& issue) { return issue.code == "partial_overlap"; });
  return issues;
}

template <class Part>
void list(Annotations& to, std::string_view name, const std::vector<Part>& parts) {
  to.begin_list(name);
  for (const Part& part : parts) {
    to.begin_item();
    each_field(part, PartWriter(to));
    to.end();
  }
  to.end();
}

}  // namespace

void RankWriter::about() {
  packets_.begin(wire::event::instant, lanes_.about);
  packets_.name("stepscope");
  Annotations& to = packets_.annotations();
  to.begin_dict("stepscope");
  to.number("version", 1);
  to.number("ranks", static_cast<std::int64_t>(place_.ranks));
  to.number("offset_ns", place_.offset_ns);
  to.number("clock_base_ns", trace_.clock_base_ns);
  to.words("writer", trace_.source.writer);
  if (!source_.missing().empty()) to.words("no_args", source_.missing());
  to.begin_dict("rank");
  each_field(trace_.rank, PartWriter(to));
  to.end();
  list(to, "issues", as_read(trace_.issues));
  list(to, "metadata", trace_.metadata);
  list(to, "devices", trace_.devices);
  list(to, "groups", trace_.groups);
  list(to, "categories", trace_.categories);
  about_tracks(to);
  to.end();
  packets_.end(place_.first_ns);
}

void RankWriter::about_tracks(Annotations& to) {
  to.begin_list("tracks");
  for (std::size_t i = 0; i < trace_.tracks.size(); i++) {
    to.begin_item();
    each_field(trace_.tracks[i], PartWriter(to));
    to.number("first_uuid", static_cast<std::int64_t>(lanes_.first[i]));
    to.number("lanes", lanes_.count[i]);
    to.end();
  }
  to.end();
  to.begin_list("counters");
  for (const auto& [counter, uuid] : lanes_.counters) {
    const auto& [track, name, key] = counter;
    to.begin_item();
    to.number("uuid", static_cast<std::int64_t>(uuid));
    to.number("track", static_cast<std::int64_t>(track));
    PartWriter part(to);
    part("name", name);
    part("key", key);
    to.end();
  }
  to.end();
}

}  // namespace stepscope::write::perfetto
