// One trace being read: a rank that stepscope wrote, which says itself what its tracks are, or all that another writer
// recorded, of which the generic part is taken.
//
// Slices come as halves, ours lane by lane: they are paired, and brought into the order of the trace that was written,
// when all packets were read.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "read/perfetto/defects.h"
#include "read/perfetto/descriptors.h"
#include "read/perfetto/event.h"
#include "read/perfetto/field_reader.h"

namespace stepscope::read::perfetto {

class RankReader {
 public:
  explicit RankReader(Defects& defects) : texts_(trace_.strings), defects_(defects) {}
  RankReader(const RankReader&) = delete;
  RankReader& operator=(const RankReader&) = delete;

  // Makes it a rank of ours, by the event that tells of the recording.
  void take_about(const Value& about, const Sequence& sequence, std::uint64_t place);
  // `time_ns` is that of the packet, `descriptors` those of foreign tracks so far.
  void take(const Event& event, const Sequence& sequence, std::uint64_t time_ns, std::uint64_t place,
            Descriptors& descriptors);
  Trace finish(const Descriptors& descriptors);

  bool is_own() const { return is_own_; }
  std::int64_t ranks() const { return ranks_; }  // as the file says; ours only

 private:
  static constexpr std::uint32_t kNoRow = 0xffffffff;
  struct Half {
    std::uint64_t lane;
    std::int64_t time_ns;
    std::uint64_t place;
    std::uint32_t row;  // kNoRow: an end
  };
  struct FlowEnd {
    std::int64_t row;  // in the trace that was written
    std::int64_t time_ns, id;
    TrackId track;
    CategoryId category;
    char phase;
  };
  struct Lanes {  // of one track: a run of uuids
    std::uint64_t first, count;
    TrackId track;
  };
  struct CounterOf {
    TrackId track;
    StringId name, key;
  };

  // about.cc
  void take_tracks(Fields& about);
  // rank.cc
  TrackId track_of(std::uint64_t uuid);
  StringId name_of(const Event& event) { return event.name ? texts_(*event.name) : StringId::none; }
  CategoryId category_of(std::string_view name);
  void begin(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place, TrackId track);
  std::int64_t take_details(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                            TrackId track);
  void instant(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place, TrackId track);
  bool take_own_instant(const Event& event, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                        TrackId track);
  void take_flows(const Value& list, const Sequence& sequence, std::int64_t time_ns, std::uint64_t place,
                  TrackId track);
  void foreign_flows(const Event& event, std::int64_t time_ns, TrackId track);
  void counter(std::uint64_t uuid, double value, std::int64_t time_ns, std::uint64_t place, Descriptors& descriptors);
  void add_counter(std::int64_t time_ns, const CounterOf& of, double value);
  // finish.cc
  void pair_halves();
  void order_slices();
  void set_places();
  void order_flows();
  void name_foreign_tracks(const Descriptors& descriptors);

  Trace trace_;
  Texts texts_;
  Defects& defects_;
  bool is_own_ = false;
  std::int64_t ranks_ = 0;
  std::uint64_t offset_ns_ = 0;
  std::vector<Lanes> lanes_;                                // ours, ascending
  std::unordered_map<std::uint64_t, TrackId> tracks_;       // another writer's, by uuid
  std::vector<std::uint64_t> uuids_;                        // of these
  std::unordered_map<std::uint64_t, CounterOf> counters_;   // ours, by uuid
  std::unordered_map<std::string, CategoryId> categories_;  // by name
  std::unordered_map<std::uint64_t, std::int64_t> open_flows_;
  std::int64_t last_flow_ = 0;
  std::vector<Half> halves_;
  std::vector<std::int64_t> durations_, numbers_;  // of slices as read: kAbsent until paired; the row that was written
  std::vector<std::uint64_t> places_, instant_places_;
  std::vector<FlowEnd> flows_;
};

}  // namespace stepscope::read::perfetto
