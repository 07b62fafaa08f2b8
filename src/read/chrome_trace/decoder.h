// Decoder: the meaning of one trace event, fed member by member, put as rows into a Batch.
//
// Both walkers (the strict one over simdjson's structural index and the tolerant one over bytes) feed the same decoder,
// so that they cannot disagree on what an event means. Texts are interned raw, with their escapes: they are undone once
// per distinct string by the assembler.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "read/chrome_trace/batch.h"
#include "read/chrome_trace/fields.h"

namespace stepscope::read::chrome_trace {

class Decoder {
 public:
  // Rows go to `batch` from now on. `text` is the chunk; places are counted from it.
  void start(Batch& batch, const char* text);

  void begin_event(const char* at);
  // One member of the event object; [begin, end) is the raw value (quotes and brackets included). False: the value is
  // not valid JSON (the strict walker gives the chunk up; the tolerant one goes on without the value).
  bool member(const char* key, std::size_t key_size, const char* begin, const char* end);
  // One member of "args".
  bool argument(const char* key, std::size_t key_size, const char* begin, const char* end);
  void arguments_text(const char* begin, const char* end) {
    if (event_.args_begin != nullptr) note(Defect::duplicate_key);
    event_.args_begin = begin;
    event_.args_end = end;
  }
  void end_event(const char* end);
  // The event is offered again later, with more text.
  void forget_event() { batch_->events--; }
  // Around an event that may fail: what was noted in it does not count then.
  void save_defects() { saved_defects_ = batch_->defects; }
  void restore_defects() { batch_->defects = saved_defects_; }

 private:
  struct Event {
    const char* begin = nullptr;
    const char* args_begin = nullptr;
    const char* args_end = nullptr;
    std::int64_t time_ns = 0, dur_ns = 0, id = kAbsent;
    LocalId name = kNoId, id_text = kNoId;
    std::uint16_t category = 0xffff;
    char phase = 0;
    bool has_time = false, has_dur = false, has_name = false;
    RawId process, thread;
    std::uint32_t numbers = 0, reals = 0, texts = 0, triples = 0, members = 0;  // bits: which were given
    std::int64_t number[kNumbers];
    double real[kReals];
    LocalId text[kTexts];
    std::uint32_t triple[kTriples][3];
  };

  struct LastId {  // a short id as its text was, and what it meant
    std::uint64_t text = 0;
    std::size_t size = 0;
    RawId id;
  };

  LocalId intern(std::string_view raw);
  LocalId intern_value(const char* begin, const char* end);
  LocalId intern_indented(const char* begin, const char* end);
  std::uint16_t intern_category(std::string_view raw);
  std::uint16_t find_category(std::string_view raw);
  std::uint32_t track(const RawTrack& ids) {
    return last_track_ != kNoId && tracks_[last_track_] == ids ? last_track_ : find_track(ids);
  }
  std::uint32_t find_track(const RawTrack& ids);
  std::uint32_t event_track() { return track({event_.process, event_.thread, kNoId}); }
  std::uint32_t async_track();
  RawId raw_id(const char* begin, const char* end, LastId& last);
  bool integer(const char* begin, const char* end, std::int64_t& out);
  bool integer_of_another_kind(const char* begin, const char* end, std::int64_t& out);
  bool rare_argument(Field field, const char* begin, const char* end);
  bool microseconds(const char* begin, const char* end, std::int64_t& ns, bool& given);
  void note(Defect defect);
  std::uint32_t place() const { return static_cast<std::uint32_t>(event_.begin - text_); }

  std::int64_t number(Number which) const { return event_.numbers >> which & 1 ? event_.number[which] : kAbsent; }
  LocalId text(Text which) const { return event_.texts >> which & 1 ? event_.text[which] : kNoId; }
  float real(Real which) const;
  SliceKind kind() const { return event_.category == 0xffff ? SliceKind::other : kinds_[event_.category]; }

  void put_slice();
  void put_op(std::uint32_t row);
  void put_launch(std::uint32_t row);
  void put_device(std::uint32_t row);
  void put_copy_speed(std::uint32_t row);
  void put_collective(std::uint32_t row);
  void put_half(bool begin, std::uint32_t track);
  void put_instant(std::uint32_t track);
  void put_memory();
  void put_flow();
  void put_counters();
  void put_metadata(const char* end);

  Batch* batch_ = nullptr;
  const char* text_ = nullptr;
  Event event_;
  DefectTally saved_defects_{};
  StringPool strings_, categories_, metadata_;
  std::vector<SliceKind> kinds_;  // by local category
  std::vector<RawTrack> tracks_;  // by local track
  std::vector<std::uint32_t> track_slots_ = std::vector<std::uint32_t>(256, kNoId);
  std::uint32_t last_track_ = kNoId;
  LastId last_process_, last_thread_;
  std::string_view last_category_text_ = "\n";  // no category yet
  std::uint16_t last_category_ = 0xffff;
};

}  // namespace stepscope::read::chrome_trace
