#include "write/perfetto/packets.h"

#include <string>

#include "formats/json_text.h"

namespace stepscope::write::perfetto {

std::uint64_t Interned::number(Numbers& numbers, wire::Field table, StringId id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= numbers.of.size()) numbers.of.resize(strings_.size(), 0);
  std::uint32_t& known = numbers.of[index];
  if (known == 0) {
    known = ++numbers.last;
    add(table, known, strings_[id]);
  }
  return known;
}

std::uint64_t Interned::annotation(std::string_view name) {
  const auto [known, is_new] = annotations_.try_emplace(name, annotations_.size() + 1);
  if (is_new) add(wire::interned::annotations, known->second, name);
  return known->second;
}

void Interned::add(wire::Field table, std::uint64_t number, std::string_view text) {
  fresh_.begin(table);
  fresh_.number(wire::interned::iid, number);
  fresh_.text(wire::interned::text, text);
  fresh_.end();
}

// The values of a list have no names.
void Annotations::begin(std::string_view name) {
  out_.begin(levels_.back());
  if (!name.empty()) out_.number(wire::annotation::name_iid, interned_.annotation(name));
}

void Annotations::open(wire::Field inner) { levels_.push_back(inner); }

void Annotations::number(std::string_view name, std::int64_t value) {
  begin(name);
  out_.number(wire::annotation::integer, static_cast<std::uint64_t>(value));
  out_.end();
}

void Annotations::real(std::string_view name, double value) {
  begin(name);
  out_.real(wire::annotation::real, value);
  out_.end();
}

void Annotations::text(std::string_view name, StringId value) {
  begin(name);
  out_.number(wire::annotation::text_iid, interned_.text(value));
  out_.end();
}

void Annotations::words(std::string_view name, std::string_view value) {
  bool repaired = false;
  begin(name);
  out_.text(wire::annotation::text, formats::visible(value, repaired));  // protobuf texts are UTF-8
  out_.end();
}

void Annotations::json(std::string_view name, std::string_view value) {
  begin(name);
  out_.text(wire::annotation::json, value);
  out_.end();
}

void Annotations::begin_dict(std::string_view name) {
  begin(name);
  open(wire::annotation::dict);
}

void Annotations::begin_list(std::string_view name) {
  begin(name);
  open(wire::annotation::array);
}

void Annotations::begin_item() {
  begin("");
  open(wire::annotation::dict);
}

void Annotations::item(std::int64_t value) { number("", value); }

void Annotations::end() {
  levels_.pop_back();
  out_.end();
}

void Packets::begin(std::uint64_t type, std::uint64_t track) {
  event_.begin(wire::packet::event);
  event_.number(wire::event::type, type);
  event_.number(wire::event::track, track);
}

void Packets::name(StringId id) {
  if (id != StringId::none) event_.number(wire::event::name_iid, interned_.name(id));
}

void Packets::category(const Trace& trace, CategoryId id) {
  if (id == CategoryId::none) return;
  const StringId name = trace.categories[static_cast<std::size_t>(id)].name;
  event_.number(wire::event::category_iids, interned_.category(name));
}

void Packets::end(std::int64_t time_ns) {
  event_.end();
  head_.number(wire::packet::timestamp, static_cast<std::uint64_t>(time_ns) + offset_ns_);
  finish();
}

void Packets::finish() {
  head_.number(wire::packet::sequence, sequence_);
  head_.number(wire::packet::flags,
               first_ ? wire::packet::cleared | wire::packet::needs_state : wire::packet::needs_state);
  if (first_) head_.number(wire::packet::first, 1);
  if (!interned_.fresh().empty()) head_.text(wire::packet::interned, interned_.fresh().bytes());
  first_ = false;
  formats::ProtoWriter frame;
  std::string whole(head_.bytes());
  whole += event_.bytes();
  frame.text(wire::trace::packet, whole);
  file_.add(frame.bytes());
  for (formats::ProtoWriter* each : {&head_, &event_, &interned_.fresh()}) each->clear();
}

}  // namespace stepscope::write::perfetto
