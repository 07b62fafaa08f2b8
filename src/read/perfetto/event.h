// One TrackEvent, and the named values (debug annotations) that stand in it. All texts are views of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/perfetto/sequence.h"

namespace stepscope::read::perfetto {

struct CounterValue {
  std::uint64_t track = 0;
  double value = 0;
};

struct Event {
  std::uint64_t type = 0, track = 0;
  std::optional<std::string_view> name;
  std::string category;  // several are joined by commas
  bool has_category = false;
  bool legacy = false;
  std::vector<std::string_view> annotations;
  std::vector<std::uint64_t> flows, last_flows;
  std::optional<double> counter;
  std::vector<CounterValue> extra_counters;
  std::uint64_t unknown_texts = 0;  // numbers whose text the file does not give

  // Replaces all members. False: the message is broken.
  bool read(std::string_view message, const Sequence& sequence);

 private:
  struct Extras {
    std::vector<std::uint64_t> tracks, real_tracks;
    std::vector<double> values, reals;
  };
  void take(const ProtoField& field, const Sequence& sequence, Extras& extras);
  void take_name(const ProtoField& field, const Sequence& sequence);
};

struct Value {
  enum class Kind : std::uint8_t { none, boolean, number, natural, real, text, json, dict, list };
  Kind kind = Kind::none;
  std::string_view name;
  std::int64_t number = 0;
  double real = 0;
  std::string_view text;
  std::string_view message;  // of a dictionary or list: its entries are the fields of this

  bool is_text() const { return kind == Kind::text; }
};

// A debug annotation. `ok` becomes false when it is broken, `unknown_texts` counts as in Event.
Value read_value(std::string_view annotation, const Sequence& sequence, bool& ok, std::uint64_t& unknown_texts);

// Calls take(Value) for the entries of a dictionary or list.
template <class Take>
void each_entry(const Value& of, const Sequence& sequence, bool& ok, std::uint64_t& unknown_texts, Take take) {
  const std::uint32_t entries = of.kind == Value::Kind::dict ? wire::annotation::dict : wire::annotation::array;
  if (of.message.empty()) return;
  ProtoFields fields(of.message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == entries && field.type == WireType::bytes) {
      take(read_value(field.bytes, sequence, ok, unknown_texts));
    }
  }
  ok &= fields.ok();
}

}  // namespace stepscope::read::perfetto
