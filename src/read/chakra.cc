// Reader of Chakra execution traces (.et): repeat(varint length, protobuf message), first a GlobalMetadata, then Nodes.
//
// Field numbers are those of MLCommons' et_def.proto (schema 0.0.4). A cut or broken record ends the reading: nothing
// behind it can be found, since the format has no marks to find a record by.
#include <algorithm>
#include <array>
#include <string>

#include "formats/file_text.h"
#include "formats/protobuf.h"
#include "model/node_graph.h"
#include "read/file_text_trace.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

using formats::ProtoField;
using formats::ProtoFields;
using formats::WireType;

constexpr std::uint64_t kLongestRecord = 64 << 20;
constexpr std::array<std::string_view, 10> kCollectives{
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControl = 4,
  kData = 5,
  kStart = 6,
  kDuration = 7,
  kInputs = 8,
  kAttribute = 10,
};

bool printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

// A first record that can be a GlobalMetadata, and behind it the start of a node with an id or a printable name.
bool recognizes(std::string_view head) {
  std::size_t at = 0;
  const auto size = formats::read_varint(head, at);
  if (!size || *size > head.size() - at) return false;
  ProtoFields fields(head.substr(at, *size));
  for (ProtoField field; fields.next(field);) {
    if (field.number > 2 || field.type != WireType::bytes) return false;
    if (field.number == 1 && (field.bytes.size() > 32 || !printable(field.bytes))) return false;
  }
  if (!fields.ok()) return false;
  at += *size;
  if (at >= head.size()) return *size >= 2;  // a file without nodes
  const auto next = formats::read_varint(head, at);
  if (!next || *next < 2 || *next > kLongestRecord) return false;
  ProtoFields node(head.substr(at, *next));
  bool id = false, name = false;
  for (ProtoField field; node.next(field) && field.number <= kType;) {
    id |= field.number == kId && field.type == WireType::varint;
    name |= field.number == kName && field.type == WireType::bytes && !field.bytes.empty() && printable(field.bytes);
    if (field.number == kName && field.type != WireType::bytes) return false;
  }
  return name && (id || head[at] == 0x12);  // an id of 0 is not written
}

// The value of an attribute: one of 30 typed fields, numbers as integers, texts as bytes.
struct Attribute {
  std::string_view name;
  std::int64_t number = kAbsent;
  std::string_view text;
};

Attribute attribute_of(std::string_view message, bool& ok) {
  constexpr std::uint32_t first_signed_zigzag[] = {17, 19};  // sint32, sint64
  Attribute attribute;
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == 1) {
      attribute.name = field.bytes;
    } else if (field.type == WireType::varint) {
      const bool zigzag = std::find(std::begin(first_signed_zigzag), std::end(first_signed_zigzag), field.number) !=
                          std::end(first_signed_zigzag);
      attribute.number = zigzag ? field.zigzag() : field.integer();
    } else if (field.type == WireType::bytes) {
      attribute.text = field.bytes;
    }
  }
  ok &= fields.ok();
  return attribute;
}

NodeKind kind_of(std::uint64_t type, bool on_host) {
  switch (type) {
    case 1: return NodeKind::metadata;
    case 2:
    case 3: return NodeKind::memory;
    case 5: return NodeKind::send;
    case 6: return NodeKind::receive;
    case 7: return NodeKind::collective;
    default: return on_host ? NodeKind::host : NodeKind::compute;
  }
}

std::int64_t nanoseconds(std::uint64_t microseconds) {
  return microseconds > INT64_MAX / 1000 ? kAbsent : static_cast<std::int64_t>(microseconds) * 1000;
}

void take_ids(const ProtoField& field, std::vector<std::int64_t>& ids, bool& ok) {
  if (field.type != WireType::bytes) {
    ids.push_back(field.integer());
    return;
  }
  for (std::size_t at = 0; at < field.bytes.size();) {
    const auto id = formats::read_varint(field.bytes, at);
    if (!id) {
      ok = false;
      return;
    }
    ids.push_back(static_cast<std::int64_t>(*id));
  }
}

void take_attribute(const Attribute& attribute, GraphNode& node, bool& on_host, std::string& group) {
  const std::string_view name = attribute.name;
  if (name == "is_cpu_op") on_host = attribute.number != 0;
  if (name == "rf_id") node.record_function_id = attribute.number;
  if (name == "seq_id") node.sequence = attribute.number;
  if (name == "tid") node.thread = attribute.number;
  if (name == "fw_tid") node.fwd_thread = attribute.number;
  if (name == "stream") node.stream = attribute.number;
  if (name == "start_ns") node.start_ns = attribute.number;  // exact, where stepscope wrote the file
  if (name == "dur_ns") node.dur_ns = attribute.number;
  if (name == "comm_size") node.comm_bytes = attribute.number;
  if (name == "comm_type" && attribute.number >= 0 && attribute.number < static_cast<int>(kCollectives.size())) {
    node.collective = kCollectives[static_cast<std::size_t>(attribute.number)];
  }
  if (name == "pg_name")
    group = attribute.text.empty() && attribute.number != kAbsent ? std::to_string(attribute.number)
                                                                  : std::string(attribute.text);
}

// False when the record is no whole message.
bool take_node(std::string_view record, std::uint64_t place, NodeGraph& graph) {
  GraphNode node;
  node.id = 0;  // what is 0 is not written
  node.place = place;
  std::uint64_t type = 0;
  bool on_host = false, ok = true;
  std::string group;
  std::vector<std::int64_t> callers;
  ProtoFields fields(record);
  for (ProtoField field; fields.next(field);) {
    switch (field.number) {
      case kId: node.id = field.integer(); break;
      case kName: node.name = field.bytes; break;
      case kType: type = field.value; break;
      case kControl: take_ids(field, callers, ok); break;
      case kData: take_ids(field, node.depends_on, ok); break;
      case kStart: node.start_ns = nanoseconds(field.value); break;
      case kDuration: node.dur_ns = nanoseconds(field.value); break;
      case kInputs: {
        ProtoFields io(field.bytes);
        for (ProtoField part; io.next(part);) {
          if (part.number == 2) node.input_dims = part.bytes;
          if (part.number == 3) node.input_types = part.bytes;
        }
        ok &= io.ok();
        break;
      }
      case kAttribute: take_attribute(attribute_of(field.bytes, ok), node, on_host, group); break;
      default: break;
    }
  }
  if (!fields.ok() || !ok) return false;
  node.kind = kind_of(type, on_host);
  if (node.kind == NodeKind::collective || node.kind == NodeKind::send || node.kind == NodeKind::receive) {
    node.group_name = group;
  } else {  // writers may give every node all attributes that some reader looks at
    node.collective = {};
    node.comm_bytes = kAbsent;
  }
  if (node.kind != NodeKind::collective) node.collective = {};
  if (!callers.empty()) {
    node.parent = callers.front();
    node.depends_on.insert(node.depends_on.end(), callers.begin() + 1, callers.end());
  }
  graph.add(node);
  return true;
}

class Records {
 public:
  Records(Trace& trace, std::string_view text) : trace_(trace), text_(text) {}

  // The next record; nullopt at the end, and where the file is cut (told as an issue).
  std::optional<std::string_view> next() {
    if (at_ >= text_.size()) return std::nullopt;
    start_ = at_;
    const auto size = formats::read_varint(text_, at_);
    if (!size) return lost("a record's length is cut or broken");
    if (*size > text_.size() - at_) return lost("a record is longer than what is left of the file");
    const std::string_view record = text_.substr(at_, *size);
    at_ += *size;
    return record;
  }
  std::optional<std::string_view> lost(std::string_view what) {
    add_issue(trace_.issues, {"broken_record", Severity::lost,
                              std::string(what) + "; " + std::to_string(text_.size() - start_) +
                                  " bytes from there on "
                                  "were not read",
                              "Write the file again with its converter", 1, trace_.source.path, start_, std::nullopt});
    at_ = text_.size();
    return std::nullopt;
  }
  std::uint64_t start() const { return start_; }

 private:
  Trace& trace_;
  std::string_view text_;
  std::size_t at_ = 0, start_ = 0;
};

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  const Result<formats::FileText> file = formats::read_text(path, options.max_text_bytes);
  if (!file) return fail(file.error());
  std::vector<Trace> traces;
  Trace& trace = traces.emplace_back(trace_of(*file, path, "chakra", "chakra"));
  Records records(trace, file->text);
  NodeGraph graph(trace);
  if (const auto metadata = records.next()) {
    ProtoFields fields(*metadata);
    for (ProtoField field; fields.next(field);) {
      if (field.number == 1) trace.metadata.push_back({"version", '"' + std::string(field.bytes) + '"'});
    }
  }
  while (const auto record = records.next()) {
    if (!take_node(*record, records.start(), graph)) {
      records.lost("a record is no Chakra node");
      break;
    }
    trace.source.events++;
  }
  graph.finish();
  const auto lost = std::find_if(trace.issues.begin(), trace.issues.end(),
                                 [](const Issue& issue) { return issue.severity == Severity::lost; });
  if (trace.nodes.size() == 0 && lost != trace.issues.end()) {
    return fail({ErrorKind::malformed, "no node could be read: " + lost->sentence, path, lost->offset,
                 "Write the file again with its converter"});
  }
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "the records of a Chakra file are no text", trace.source.path, std::nullopt,
               "Use the columns of the table nodes"});
}

}  // namespace

Reader chakra_reader() {
  return {"chakra", "Chakra execution traces (.et), plain or gzip", recognizes, read_file, no_text};
}

}  // namespace stepscope::read
