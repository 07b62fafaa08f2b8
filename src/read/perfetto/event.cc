#include "read/perfetto/event.h"

#include <algorithm>
#include <bit>

namespace stepscope::read::perfetto {
namespace {

// Repeated numbers come one by one or packed into one field.
void take_numbers(const ProtoField& field, bool fixed, std::vector<std::uint64_t>& to) {
  if (field.type != WireType::bytes) {
    to.push_back(field.value);
    return;
  }
  for (std::size_t at = 0; at < field.bytes.size();) {
    std::uint64_t value = 0;
    if (fixed) {
      if (field.bytes.size() - at < sizeof value) return;
      std::memcpy(&value, field.bytes.data() + at, sizeof value);
      at += sizeof value;
    } else {
      const auto read = formats::read_varint(field.bytes, at);
      if (!read) return;
      value = *read;
    }
    to.push_back(value);
  }
}

std::vector<double> as_reals(const std::vector<std::uint64_t>& bits) {
  std::vector<double> reals;
  for (const std::uint64_t each : bits) reals.push_back(std::bit_cast<double>(each));
  return reals;
}

std::string_view resolve(const InternTable& table, std::uint64_t number, std::uint64_t& unknown) {
  const auto text = table.find(number);
  if (!text) unknown++;
  return text.value_or(std::string_view());
}

}  // namespace

void Event::take_name(const ProtoField& field, const Sequence& sequence) {
  std::string_view text = field.bytes;
  const bool is_category = field.number == wire::event::category_iids || field.number == wire::event::categories;
  if (field.number == wire::event::name_iid || field.number == wire::event::category_iids) {
    const auto known = (is_category ? sequence.categories : sequence.names).find(field.value);
    if (!known) {
      unknown_texts++;
      return;
    }
    text = *known;
  }
  if (!is_category) {
    name = text;
    return;
  }
  if (has_category) category += ',';
  category += text;
  has_category = true;
}

void Event::take(const ProtoField& field, const Sequence& sequence, Extras& extras) {
  std::vector<std::uint64_t> numbers;
  switch (field.number) {
    case wire::event::type: type = field.value; break;
    case wire::event::track: track = field.value; break;
    case wire::event::legacy: legacy = true; break;
    case wire::event::annotations: annotations.push_back(field.bytes); break;
    case wire::event::name:
    case wire::event::categories:
    case wire::event::name_iid: take_name(field, sequence); break;
    case wire::event::category_iids:
      take_numbers(field, false, numbers);
      for (const std::uint64_t each : numbers) take_name({field.number, WireType::varint, each, {}}, sequence);
      break;
    case wire::event::flows:
    case wire::event::old_flows: take_numbers(field, field.number == wire::event::flows, flows); break;
    case wire::event::last_flows:
    case wire::event::old_last_flows: take_numbers(field, field.number == wire::event::last_flows, last_flows); break;
    case wire::event::counter_value: counter = static_cast<double>(field.integer()); break;
    case wire::event::counter_real: counter = std::bit_cast<double>(field.value); break;
    case wire::event::extra_tracks: take_numbers(field, false, extras.tracks); break;
    case wire::event::extra_real_tracks: take_numbers(field, false, extras.real_tracks); break;
    case wire::event::extra_values:
      take_numbers(field, false, numbers);
      for (const std::uint64_t each : numbers)
        extras.values.push_back(static_cast<double>(static_cast<std::int64_t>(each)));
      break;
    case wire::event::extra_reals:
      take_numbers(field, true, numbers);
      for (const double each : as_reals(numbers)) extras.reals.push_back(each);
      break;
    default: break;
  }
}

bool Event::read(std::string_view message, const Sequence& sequence) {
  type = track = unknown_texts = 0;
  name = std::nullopt;
  counter = std::nullopt;
  category.clear();
  has_category = legacy = false;
  for (auto* list : {&flows, &last_flows}) list->clear();
  annotations.clear();
  extra_counters.clear();
  Extras extras, defaults;
  ProtoFields given(sequence.event_defaults);
  for (ProtoField field; given.next(field);) take(field, sequence, defaults);
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) take(field, sequence, extras);
  const auto pair = [&](const std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& otherwise,
                        const std::vector<double>& values) {
    const auto& tracks = own.empty() ? otherwise : own;
    for (std::size_t i = 0; i < std::min(tracks.size(), values.size()); i++) {
      extra_counters.push_back({tracks[i], values[i]});
    }
  };
  pair(extras.tracks, defaults.tracks, extras.values);
  pair(extras.real_tracks, defaults.real_tracks, extras.reals);
  return fields.ok();
}

Value read_value(std::string_view annotation, const Sequence& sequence, bool& ok, std::uint64_t& unknown_texts) {
  using Kind = Value::Kind;
  Value value;
  const auto number = [&](Kind kind, const ProtoField& field) {
    value.kind = kind;
    value.number = field.integer();
  };
  ProtoFields fields(annotation);
  for (ProtoField field; fields.next(field);) {
    switch (field.number) {
      case wire::annotation::name_iid: value.name = resolve(sequence.annotations, field.value, unknown_texts); break;
      case wire::annotation::name: value.name = field.bytes; break;
      case wire::annotation::boolean: number(Kind::boolean, field); break;
      case wire::annotation::integer: number(Kind::number, field); break;
      case wire::annotation::natural:
      case wire::annotation::pointer: number(Kind::natural, field); break;
      case wire::annotation::real:
        value.kind = Kind::real;
        value.real = std::bit_cast<double>(field.value);
        break;
      case wire::annotation::text_iid:
        value.kind = Kind::text;
        value.text = resolve(sequence.texts, field.value, unknown_texts);
        break;
      case wire::annotation::text:
      case wire::annotation::json:
        value.kind = field.number == wire::annotation::text ? Kind::text : Kind::json;
        value.text = field.bytes;
        break;
      case wire::annotation::dict:
      case wire::annotation::array:
        value.kind = field.number == wire::annotation::dict ? Kind::dict : Kind::list;
        value.message = annotation;
        break;
      default: break;
    }
  }
  ok &= fields.ok();
  return value;
}

}  // namespace stepscope::read::perfetto
