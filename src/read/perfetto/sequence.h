// What packets of one writer share: numbered names and texts, defaults. A trace holds many such sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/perfetto_fields.h"
#include "formats/protobuf.h"

namespace stepscope::read::perfetto {

namespace wire = formats::perfetto;
using formats::ProtoField;
using formats::ProtoFields;
using formats::WireType;

// Texts by number. Writers count upwards, so nearly all lie in a list; the rest, whatever its numbers, in a map.
class InternTable {
 public:
  void add(std::uint64_t number, std::string_view text) {
    if (number < list_.size()) {
      list_[number] = text;
    } else if (number == list_.size()) {
      list_.push_back(text);
    } else {
      map_[number] = text;
    }
  }
  std::optional<std::string_view> find(std::uint64_t number) const {
    if (number < list_.size()) return number == 0 ? std::nullopt : std::optional(list_[number]);
    const auto found = map_.find(number);
    return found == map_.end() ? std::nullopt : std::optional(found->second);
  }
  void clear() {
    list_.resize(1);
    map_.clear();
  }

 private:
  std::vector<std::string_view> list_{{}};  // number 0 means none
  std::unordered_map<std::uint64_t, std::string_view> map_;
};

struct Sequence {
  std::uint64_t id = 0;
  InternTable names, categories, annotations, texts;
  std::uint64_t default_clock = 0;
  std::string_view event_defaults;  // a message with the numbers of TrackEvent

  void clear() {
    for (InternTable* table : {&names, &categories, &annotations, &texts}) table->clear();
    default_clock = 0;
    event_defaults = {};
  }
  // False: the message is broken; what stands before the break counts.
  bool learn(std::string_view interned_data);
  bool take_defaults(std::string_view message);
};

}  // namespace stepscope::read::perfetto
