// The packets of one rank: a sequence of its own in the file, with names and texts written once and then by number.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/out_file.h"
#include "formats/perfetto_fields.h"
#include "formats/protobuf_writer.h"
#include "model/trace.h"

namespace stepscope::write::perfetto {

namespace wire = formats::perfetto;

// What was numbered so far, and what the packet that is being made has to tell of it.
class Interned {
 public:
  explicit Interned(const StringPool& strings) : strings_(strings) {}

  std::uint64_t name(StringId id) { return number(names_, wire::interned::names, id); }
  std::uint64_t category(StringId id) { return number(categories_, wire::interned::categories, id); }
  std::uint64_t text(StringId id) { return number(texts_, wire::interned::texts, id); }
  std::uint64_t annotation(std::string_view name);  // a literal
  formats::ProtoWriter& fresh() { return fresh_; }

 private:
  struct Numbers {
    std::vector<std::uint32_t> of;  // by StringId; 0: none yet
    std::uint32_t last = 0;
  };
  std::uint64_t number(Numbers& numbers, wire::Field table, StringId id);
  void add(wire::Field table, std::uint64_t number, std::string_view text);

  const StringPool& strings_;
  Numbers names_, categories_, texts_;
  std::unordered_map<std::string_view, std::uint64_t> annotations_;
  formats::ProtoWriter fresh_;
};

// Debug annotations of one event: named values, dictionaries and lists of them. Names are literals.
class Annotations {
 public:
  Annotations(formats::ProtoWriter& out, Interned& interned) : out_(out), interned_(interned) {}

  void number(std::string_view name, std::int64_t value);
  void real(std::string_view name, double value);
  void text(std::string_view name, StringId value);
  void words(std::string_view name, std::string_view value);  // texts that come once
  void json(std::string_view name, std::string_view value);
  void begin_dict(std::string_view name);
  void begin_list(std::string_view name);
  void begin_item();              // of a list: a dictionary
  void item(std::int64_t value);  // of a list: a number
  void end();                     // of a dictionary, list or item

 private:
  void begin(std::string_view name);
  void open(wire::Field inner);

  formats::ProtoWriter& out_;
  Interned& interned_;
  std::vector<wire::Field> levels_{wire::event::annotations};  // the field that a value is written as
};

class Packets {
 public:
  // `offset_ns` is added to all times.
  Packets(formats::OutFile& file, const StringPool& strings, std::uint32_t sequence, std::uint64_t offset_ns)
      : file_(file), sequence_(sequence), offset_ns_(offset_ns), interned_(strings), annotations_(event_, interned_) {}

  // A TrackDescriptor: `fill` writes its members.
  template <class Fill>
  void track(Fill fill) {
    event_.begin(wire::packet::track);
    fill(event_);
    event_.end();
    finish();
  }
  // An event is begun, filled through the members below, and ended.
  void begin(std::uint64_t type, std::uint64_t track);
  void end(std::int64_t time_ns);
  void name(StringId id);
  void name(std::string_view words) { event_.text(wire::event::name, words); }
  void category(const Trace& trace, CategoryId id);
  formats::ProtoWriter& event() { return event_; }
  Annotations& annotations() { return annotations_; }

 private:
  void finish();

  formats::OutFile& file_;
  std::uint32_t sequence_;
  std::uint64_t offset_ns_;
  bool first_ = true;
  Interned interned_;
  formats::ProtoWriter head_, event_;
  Annotations annotations_;
};

}  // namespace stepscope::write::perfetto
