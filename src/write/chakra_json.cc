#include "write/chakra_json.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/file_text.h"
#include "formats/out_file.h"
#include "formats/protobuf.h"
#include "report/json_writer.h"

namespace stepscope::write {
namespace {

using formats::ProtoField;
using formats::ProtoFields;
using formats::WireType;
using report::JsonWriter;
using Layout = JsonWriter::Layout;

enum class Kind : std::uint8_t {
  real,
  single,
  small,
  number,
  unsigned_number,
  zigzag_small,
  zigzag,
  fixed,
  boolean,
  text
};

// The values of an attribute: fields 3, 4 (one, a list), 5, 6 …
struct ValueKind {
  std::string_view name;
  Kind kind;
};
constexpr std::array<ValueKind, 15> kValues{{{"double", Kind::real},
                                             {"float", Kind::single},
                                             {"int32", Kind::small},
                                             {"int64", Kind::number},
                                             {"uint32", Kind::small},
                                             {"uint64", Kind::unsigned_number},
                                             {"sint32", Kind::zigzag_small},
                                             {"sint64", Kind::zigzag},
                                             {"fixed32", Kind::small},
                                             {"fixed64", Kind::unsigned_number},
                                             {"sfixed32", Kind::fixed},
                                             {"sfixed64", Kind::number},
                                             {"bool", Kind::boolean},
                                             {"string", Kind::text},
                                             {"bytes", Kind::text}}};
constexpr std::array<std::string_view, 8> kNodeTypes{"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                     "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                     "COMM_RECV_NODE", "COMM_COLL_NODE"};

void write_value(JsonWriter& json, Kind kind, const ProtoField& field) {
  switch (kind) {
    case Kind::real: {
      double value = 0;
      std::memcpy(&value, &field.value, sizeof value);
      json.number(value);
      return;
    }
    case Kind::single: {
      float value = 0;
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&value, &bits, sizeof value);
      json.number(static_cast<double>(value));
      return;
    }
    case Kind::small: json.number(field.integer()); return;
    case Kind::number: json.text(std::to_string(field.integer())); return;
    case Kind::unsigned_number: json.text(std::to_string(field.value)); return;
    case Kind::zigzag_small: json.number(field.zigzag()); return;
    case Kind::zigzag: json.text(std::to_string(field.zigzag())); return;
    case Kind::fixed: json.number(static_cast<std::int32_t>(field.value)); return;
    case Kind::boolean: json.boolean(field.value != 0); return;
    case Kind::text: json.text(field.bytes); return;
  }
}

std::size_t fixed_size(std::size_t at) {
  const std::string_view name = kValues[at].name;
  if (name == "double" || name == "fixed64" || name == "sfixed64") return 8;
  return name == "float" || name == "fixed32" || name == "sfixed32" ? 4 : 0;
}

// The values of a list: packed into one field, or one field each.
bool write_list(JsonWriter& json, std::size_t kind, std::string_view message) {
  json.begin_object(Layout::line).key("values").begin_array(Layout::line);
  ProtoFields fields(message);
  bool whole = true;
  for (ProtoField field; fields.next(field);) {
    if (field.number != 1) continue;
    if (field.type != WireType::bytes || kValues[kind].kind == Kind::text) {
      write_value(json, kValues[kind].kind, field);
      continue;
    }
    for (std::size_t at = 0; at < field.bytes.size() && whole;) {
      ProtoField one;
      if (const std::size_t size = fixed_size(kind); size > 0) {
        whole = field.bytes.size() - at >= size;
        if (whole) std::memcpy(&one.value, field.bytes.data() + at, size);
        at += size;
      } else {
        const auto value = formats::read_varint(field.bytes, at);
        whole = value.has_value();
        one.value = value.value_or(0);
      }
      if (whole) write_value(json, kValues[kind].kind, one);
    }
  }
  json.end_array().end_object();
  return whole && fields.ok();
}

bool write_attribute(JsonWriter& json, std::string_view message) {
  json.begin_object(Layout::line);
  ProtoFields fields(message);
  bool whole = true;
  for (ProtoField field; fields.next(field);) {
    if (field.number == 1) json.key("name").text(field.bytes);
    if (field.number == 2) json.key("docString").text(field.bytes);
    if (field.number < 3 || field.number > 32) continue;
    const std::size_t kind = (field.number - 3) / 2;
    const bool list = field.number % 2 == 0;
    if (list && field.type != WireType::bytes) return false;
    json.key(std::string(kValues[kind].name) + (list ? "List" : "Val"));
    if (list) {
      whole &= write_list(json, kind, field.bytes);
    } else {
      write_value(json, kValues[kind].kind, field);
    }
  }
  json.end_object();
  return whole && fields.ok();
}

bool write_inputs(JsonWriter& json, std::string_view message) {
  constexpr std::array<std::string_view, 4> names{"", "values", "shapes", "types"};
  json.begin_object(Layout::line);
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number >= 1 && field.number <= 3) json.key(names[field.number]).text(field.bytes);
  }
  json.end_object();
  return fields.ok();
}

struct Lists {
  std::vector<std::uint64_t> control, data;
  std::vector<std::string_view> attributes;
};

bool take_ids(const ProtoField& field, std::vector<std::uint64_t>& ids) {
  if (field.type != WireType::bytes) {
    ids.push_back(field.value);
    return true;
  }
  for (std::size_t at = 0; at < field.bytes.size();) {
    const auto id = formats::read_varint(field.bytes, at);
    if (!id) return false;
    ids.push_back(*id);
  }
  return true;
}

void write_ids(JsonWriter& json, std::string_view key, const std::vector<std::uint64_t>& ids) {
  if (ids.empty()) return;
  json.key(key).begin_array(Layout::line);
  for (const std::uint64_t id : ids) json.text(std::to_string(id));
  json.end_array();
}

bool write_attributes(JsonWriter& json, const std::vector<std::string_view>& attributes) {
  if (attributes.empty()) return true;
  bool whole = true;
  json.key("attr").begin_array(Layout::line);
  for (const std::string_view attribute : attributes) whole &= write_attribute(json, attribute);
  json.end_array();
  return whole;
}

bool write_node(JsonWriter& json, std::string_view record) {
  json.begin_object(Layout::line);
  Lists lists;
  bool whole = true;
  ProtoFields fields(record);
  for (ProtoField field; fields.next(field) && whole;) {
    switch (field.number) {
      case 1: json.key("id").text(std::to_string(field.value)); break;
      case 2: json.key("name").text(field.bytes); break;
      case 3:
        json.key("type");
        field.value < kNodeTypes.size() ? json.text(kNodeTypes[field.value]) : json.number(field.value);
        break;
      case 4: whole = take_ids(field, lists.control); break;
      case 5: whole = take_ids(field, lists.data); break;
      case 6: json.key("startTimeMicros").text(std::to_string(field.value)); break;
      case 7: json.key("durationMicros").text(std::to_string(field.value)); break;
      case 8:
      case 9: whole = write_inputs(json.key(field.number == 8 ? "inputs" : "outputs"), field.bytes); break;
      case 10: lists.attributes.push_back(field.bytes); break;
      default: break;
    }
  }
  write_ids(json, "ctrlDeps", lists.control);
  write_ids(json, "dataDeps", lists.data);
  whole &= write_attributes(json, lists.attributes);
  json.end_object();
  return whole && fields.ok();
}

bool write_head(JsonWriter& json, std::string_view record) {
  Lists lists;
  ProtoFields fields(record);
  for (ProtoField field; fields.next(field);) {
    if (field.number == 1) json.key("version").text(field.bytes);
    if (field.number == 2) lists.attributes.push_back(field.bytes);
  }
  return write_attributes(json, lists.attributes) && fields.ok();
}

Error broken(const std::string& path, std::size_t at, std::string what) {
  return {ErrorKind::malformed, std::move(what), path, at, "Write the file again with its converter"};
}

}  // namespace

Result<void> write_chakra_json(const std::string& path, const std::string& out) {
  const auto file = formats::read_text(path, UINT64_MAX);
  if (!file) return fail(file.error());
  const std::string_view text = file->text;
  auto target = formats::OutFile::create(out);
  if (!target) return fail(target.error());
  bool first = true, first_node = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const auto size = formats::read_varint(text, at);
    if (!size || *size > text.size() - at) return fail(broken(path, start, "a record's length is cut or too large"));
    JsonWriter json;
    if (first) {
      json.begin_object(Layout::line);
      if (!write_head(json, text.substr(at, *size))) return fail(broken(path, start, "is no Chakra file"));
      json.end_object();
      std::string head = json.take();
      head.pop_back();
      target->add(head + (head.size() > 1 ? ", " : "") + "\"nodes\": [");
      first = false;
    } else {
      if (!write_node(json, text.substr(at, *size))) return fail(broken(path, start, "a record is no Chakra node"));
      target->add((first_node ? "\n" : ",\n") + json.take());
      first_node = false;
    }
    at += *size;
  }
  if (first) return fail(broken(path, 0, "the file is empty"));
  target->add("\n]}\n");
  return target->finish();
}

}  // namespace stepscope::write
