// Reader of PyTorch execution traces (ExecutionTraceObserver), schemas 1.0.1 to 1.1.1, and of Chakra's linked form of
// them: {"schema", "pid", "time", "nodes": [{"id", "name", …}]}.
//
// Nodes are cut out of the text one by one and parsed each for itself, so that a broken or cut file gives all nodes up
// to the damage. Schema 1.0.1 has flat keys (parent, rf_id, input_shapes …); from 1.0.2 on the caller is in ctrl_deps,
// shapes lie in inputs.shapes and the rest in attrs [{name, type, value}]. Both are looked for in every node: the
// version that the file states is kept, not trusted.
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "formats/file_text.h"
#include "formats/json_text.h"
#include "model/collective_work.h"
#include "model/element_types.h"
#include "model/node_graph.h"
#include "read/file_text_trace.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kGroupInit = "## process_group:init ##";

bool recognizes(std::string_view head) {
  const std::size_t first = formats::skip_space(head, head.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  if (first >= head.size() || head[first] != '{') return false;
  const std::size_t nodes = head.find("\"nodes\"");
  return nodes != head.npos && head.substr(0, nodes).find("\"schema\"") != head.npos &&
         head.substr(0, nodes).find("\"traceEvents\"") == head.npos;
}

std::int64_t integer(const dom::element& value) {
  if (std::int64_t number = 0; value.get(number) == simdjson::SUCCESS) return number;
  if (std::uint64_t number = 0; value.get(number) == simdjson::SUCCESS) return static_cast<std::int64_t>(number);
  if (double number = 0; value.get(number) == simdjson::SUCCESS && std::abs(number) < 9.2e18) {
    return static_cast<std::int64_t>(number);
  }
  return kAbsent;
}

std::string_view words(const dom::element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::int64_t nanoseconds(const dom::element& microseconds) {
  double us = 0;
  if (microseconds.get(us) != simdjson::SUCCESS || us < 0 || us > 9e15) return kAbsent;
  return std::llround(us * 1000);
}

bool starts_collective(std::string_view name) {
  return name == "record_param_comms" || name.starts_with("nccl:") || name.starts_with("gloo:") ||
         name.starts_with("ucc:") || name.starts_with("mpi:") || name.starts_with("xccl:") || name.starts_with("hccl:");
}

NodeKind kind_of(std::string_view name, std::string_view collective) {
  if (name.ends_with("|process]") && name.starts_with("[pytorch|profiler|")) return NodeKind::process;
  if (name.ends_with("|thread]") && name.starts_with("[pytorch|profiler|")) return NodeKind::thread;
  if (name == kGroupInit) return NodeKind::metadata;
  if (!starts_collective(name)) return NodeKind::host;
  switch (collective_kind(collective.empty() ? name : collective)) {
    case CollectiveKind::send: return NodeKind::send;
    case CollectiveKind::receive: return NodeKind::receive;
    default: return NodeKind::collective;
  }
}

// What is said of a node, collected from flat keys and attrs alike.
struct Said {
  GraphNode node;
  std::string dims, types;  // own the texts that `node` points to
  std::string_view dtype;
  bool on_device = false;  // a kernel or copy that a linker added
  std::int64_t elements_in = kAbsent, elements_out = kAbsent;

  void take(std::string_view key, const dom::element& value) {
    if (key == "rf_id") node.record_function_id = integer(value);
    if (key == "seq_id") node.sequence = integer(value);
    if (key == "tid") node.thread = integer(value);
    if (key == "fw_tid") node.fwd_thread = integer(value);
    if (key == "stream") node.stream = integer(value);
    if (key == "collective_name") node.collective = words(value);
    if (key == "pg_name") node.group_name = words(value);
    if (key == "dtype") dtype = words(value);
    if (key == "in_msg_nelems") elements_in = integer(value);
    if (key == "out_msg_nelems") elements_out = integer(value);
    if (key == "comm_size") node.comm_bytes = integer(value);
    if (key == "ts") node.start_ns = nanoseconds(value);
    if (key == "inclusive_dur") node.dur_ns = nanoseconds(value);
    if (key == "start_ns") node.start_ns = integer(value);  // exact, where stepscope linked the file
    if (key == "dur_ns") node.dur_ns = integer(value);
    if (key == "cat") on_device = is_device_work(slice_kind(words(value)));
  }

  void take_inputs(const dom::object& inputs) {
    for (const auto& [key, value] : inputs) {
      if (key == "shapes") dims = simdjson::minify(value);
      if (key == "types") types = simdjson::minify(value);
    }
  }

  void take_attributes(const dom::array& attributes) {
    for (const dom::element attribute : attributes) {
      std::string_view name;
      dom::element value;
      if (attribute["name"].get(name) == simdjson::SUCCESS && attribute["value"].get(value) == simdjson::SUCCESS) {
        take(name, value);
      }
    }
  }

  void take_member(std::string_view key, const dom::element& value) {
    if (key == "id") node.id = integer(value);
    if (key == "name") node.name = words(value);
    if (key == "parent" || key == "ctrl_deps") node.parent = integer(value);
    if (key == "input_shapes") dims = simdjson::minify(value);
    if (key == "input_types") types = simdjson::minify(value);
    if (dom::object inputs; key == "inputs" && value.get(inputs) == simdjson::SUCCESS) take_inputs(inputs);
    if (dom::array list; key == "attrs" && value.get(list) == simdjson::SUCCESS) take_attributes(list);
    if (dom::array list; (key == "data_deps" || key == "inter_thread_dep" || key == "sync_dep")) {
      if (value.get(list) == simdjson::SUCCESS) {
        for (const dom::element other : list) node.depends_on.push_back(integer(other));
      } else if (const std::int64_t other = integer(value); other != kAbsent) {
        node.depends_on.push_back(other);
      }
      return;
    }
    take(key, value);
  }

  const GraphNode& finish() {
    node.kind = on_device ? NodeKind::compute : kind_of(node.name, node.collective);
    node.input_dims = dims == "[]" ? std::string_view() : dims;
    node.input_types = types == "[]" ? std::string_view() : types;
    const auto size = recorded_element_bytes(dtype);
    if (node.comm_bytes == kAbsent && size && (elements_in > 0 || elements_out > 0)) {
      node.comm_bytes = std::max(elements_in, elements_out) * *size;
    }
    return node;
  }
};

// The ranks of a group are known to this node alone: its only input is a text with JSON in it.
void keep_groups(Trace& trace, const dom::object& node) {
  dom::element inputs, first;
  std::string_view text;
  if (node["inputs"].get(inputs) != simdjson::SUCCESS) return;
  dom::element values = inputs;
  if (inputs.is_object() && inputs["values"].get(values) != simdjson::SUCCESS) return;
  if (values.at(0).get(first) != simdjson::SUCCESS || first.get(text) != simdjson::SUCCESS) return;
  if (text.starts_with('[')) trace.metadata.push_back({"process_groups", std::string(text)});
}

class NodeReader {
 public:
  NodeReader(Trace& trace, std::string& text) : trace_(trace), graph_(trace), size_(text.size()) {
    text.append(simdjson::SIMDJSON_PADDING, ' ');
    text_ = std::string_view(text).substr(0, size_);
  }

  // `at` is behind the '[' of the nodes. Where the list ends, or npos when it does not.
  std::size_t read(std::size_t at) {
    for (;;) {
      at = formats::skip_space(text_, at);
      if (at < size_ && text_[at] == ',') at = formats::skip_space(text_, at + 1);
      if (at >= size_) return cut(at);
      if (text_[at] == ']') return at + 1;
      const std::size_t end = formats::skip_value(text_, at);
      if (end == text_.npos) return cut(at);
      if (end == at) return broken(at, size_ - at);
      take(at, end - at);
      at = end;
    }
  }
  void finish() { graph_.finish(); }
  std::uint64_t nodes() const { return nodes_; }

 private:
  void take(std::size_t at, std::size_t size) {
    nodes_++;
    dom::element value;
    dom::object object;
    if (parser_.parse(text_.data() + at, size, false).get(value) != simdjson::SUCCESS ||
        value.get(object) != simdjson::SUCCESS) {
      broken(at, size);
      return;
    }
    Said said;
    said.node.place = at;
    for (const auto& [key, member] : object) said.take_member(key, member);
    if (said.node.name == kGroupInit) keep_groups(trace_, object);
    graph_.add(said.finish());
  }
  std::size_t cut(std::size_t at) {
    add_issue(trace_.issues, {"cut_inside_node", Severity::lost, "the file ends before its list of nodes does",
                              "Record again: the writer may have been stopped", 1, trace_.source.path,
                              std::min(at, size_), std::nullopt});
    return text_.npos;
  }
  std::size_t broken(std::size_t at, std::size_t bytes) {
    add_issue(trace_.issues, {"broken_node", Severity::lost,
                              "a node could not be understood and was left out (" + std::to_string(bytes) + " bytes)",
                              "Look at the file around that byte", 1, trace_.source.path, at, std::nullopt});
    return text_.npos;
  }

  Trace& trace_;
  NodeGraph graph_;
  std::size_t size_;
  std::string_view text_;
  dom::parser parser_;
  std::uint64_t nodes_ = 0;
};

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  Result<formats::FileText> file = formats::read_text(path, options.max_text_bytes);
  if (!file) return fail(file.error());
  std::vector<Trace> traces;
  Trace& trace = traces.emplace_back(trace_of(*file, path, "execution_trace", "torch"));
  const std::size_t key = file->text.find("\"nodes\"");
  const std::size_t open = key == std::string::npos ? key : file->text.find('[', key);
  if (open == std::string::npos) {
    return fail({ErrorKind::malformed, "no list of nodes was found before the text ends", path, std::nullopt,
                 "Check that the export was complete"});
  }
  const std::size_t object = std::min(file->text.find('{'), key);
  const std::string head = file->text.substr(object, key - object) + "\"nodes\": 0}";
  for (const auto& member : formats::members(head)) {
    if (member.key != "nodes") trace.metadata.push_back({member.key, std::string(member.value)});
  }
  NodeReader reader(trace, file->text);
  reader.read(open + 1);
  reader.finish();
  trace.source.events = reader.nodes();
  return traces;
}

Result<std::vector<std::string>> node_text(const Trace& trace, std::span<const std::uint64_t> offsets) {
  const Result<formats::FileText> file = formats::read_text(trace.source.path, UINT64_MAX);
  if (!file) return fail(file.error());
  std::vector<std::string> texts;
  for (const std::uint64_t offset : offsets) {
    const std::size_t end = offset < file->text.size() ? formats::skip_value(file->text, offset) : std::string::npos;
    if (end == std::string::npos) {
      return fail({ErrorKind::changed, "the node is no longer where it was read", trace.source.path, offset,
                   "Open the file again"});
    }
    texts.push_back(file->text.substr(offset, end - offset));
  }
  return texts;
}

}  // namespace

Reader execution_trace_reader() {
  return {"execution_trace", "PyTorch execution traces (ExecutionTraceObserver), plain or gzip", recognizes, read_file,
          node_text};
}

}  // namespace stepscope::read
