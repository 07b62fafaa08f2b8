// The event in which a rank of ours tells of its recording (src/write/perfetto/about.cc writes it).
#include <algorithm>

#include "read/perfetto/rank.h"

namespace stepscope::read::perfetto {
namespace {

constexpr std::int64_t kVersion = 1;

template <class Part>
void take_parts(Fields& from, std::string_view list, Texts& texts, std::vector<Part>& to) {
  from.each_item(list, [&](Fields& item) { each_field(to.emplace_back(), PartReader(item, texts)); });
}

}  // namespace

void RankReader::take_about(const Value& about, const Sequence& sequence, std::uint64_t place) {
  bool ok = true;
  std::uint64_t unknown = 0;
  Fields fields(about, sequence, ok, unknown);
  is_own_ = true;
  const std::int64_t version = fields.number("version", 0);
  ranks_ = fields.number("ranks", 1);
  offset_ns_ = static_cast<std::uint64_t>(fields.number("offset_ns", 0));
  trace_.clock_base_ns = fields.number("clock_base_ns", kAbsent);
  PartReader(fields, texts_)("writer", trace_.source.writer);
  Fields rank = fields.dict("rank");
  each_field(trace_.rank, PartReader(rank, texts_));
  trace_.rank.rank = std::max<std::int64_t>(trace_.rank.rank, 0);
  trace_.rank.world_size = std::max<std::int64_t>(trace_.rank.world_size, 0);
  if (ranks_ > 1)
    trace_.rank.source = RankSource::distributed_info;  // a name or order says nothing of several in a file
  take_parts(fields, "issues", texts_, trace_.issues);
  std::erase_if(trace_.issues, [](const Issue& i) { return i.code.empty() || i.sentence.empty() || i.count == 0; });
  take_parts(fields, "metadata", texts_, trace_.metadata);
  take_parts(fields, "devices", texts_, trace_.devices);
  take_parts(fields, "groups", texts_, trace_.groups);
  fields.each_item("categories", [&](Fields& item) {
    Category category;
    each_field(category, PartReader(item, texts_));
    const std::size_t known =
        trace_.categories.size();  // derive makes twins of the same name; the first is as recorded
    category_of(trace_.strings[category.name]);
    if (trace_.categories.size() > known) trace_.categories.back().kind = category.kind;
  });
  take_tracks(fields);
  if (version > kVersion) {
    add_issue(trace_.issues,
              {"newer_export", Severity::info, "a newer stepscope wrote the file; what it added is not read",
               "Use the stepscope that wrote it, or a newer one", 1, trace_.source.path, place, std::nullopt});
  }
  defects_.note(Defect::unknown_text, place, unknown);
  defects_.note(Defect::bad_details, place, ok ? 0 : 1);
}

void RankReader::take_tracks(Fields& about) {
  about.each_item("tracks", [&](Fields& item) {
    Track track;
    each_field(track, PartReader(item, texts_));
    const auto id = static_cast<TrackId>(trace_.tracks.size());
    trace_.tracks.push_back(track);
    const auto first = static_cast<std::uint64_t>(item.number("first_uuid", 0));
    lanes_.push_back({first, static_cast<std::uint64_t>(item.number("lanes", 1)), id});
  });
  std::stable_sort(lanes_.begin(), lanes_.end(), [](const Lanes& a, const Lanes& b) { return a.first < b.first; });
  about.each_item("counters", [&](Fields& item) {
    CounterOf counter{TrackId::none, StringId::none, StringId::none};
    PartReader part(item, texts_);
    part("name", counter.name);
    part("key", counter.key);
    const std::int64_t track = item.number("track", -1);
    if (track < 0 || track >= static_cast<std::int64_t>(trace_.tracks.size())) return;
    counter.track = static_cast<TrackId>(track);
    counters_[static_cast<std::uint64_t>(item.number("uuid", 0))] = counter;
  });
}

}  // namespace stepscope::read::perfetto
