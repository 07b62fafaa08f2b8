#include "read/memory_state.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "formats/file_text.h"
#include "formats/json_text.h"
#include "read/reader.h"
#include "read/trace_rows.h"

namespace stepscope::read {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr int kVersion = 1;
constexpr std::uint64_t kMostText = 256 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;  // 8 PiB; sums of 11 categories fit
constexpr std::uint32_t kDeepest = 200;

bool recognizes(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \n\r\t");
  if (first == head.npos || head[first] != '{') return false;
  const std::string_view start = head.substr(first, 256);
  return start.find("\"schema_version\"") != start.npos && start.find("\"memory_state\"") != start.npos;
}

// Reads one file; what does not fit is counted and told at the end.
class File {
 public:
  File(element root, const std::string& path) : root_(root) { state_.path = path; }

  MemoryState read() {
    read_about();
    read_nodes();
    element peak;
    if (root_["peak"].get(peak) == simdjson::SUCCESS && peak.is_object()) state_.peak = layout(peak);
    state_.step_peaks = layouts("step_peaks");
    state_.step_ends = layouts("step_ends");
    read_largest();
    read_points();
    tell();
    return std::move(state_);
  }

 private:
  std::string text(element from, const char* key) {
    std::string_view found;
    if (from[key].get(found) != simdjson::SUCCESS) return {};
    bool repaired = false;
    return formats::visible(found, repaired);
  }

  static std::optional<std::int64_t> number(element from, const char* key) {
    std::int64_t found = 0;
    if (from[key].get(found) != simdjson::SUCCESS) return std::nullopt;
    return found;
  }

  // Bytes that may be unknown; a size that cannot be is.
  std::optional<std::int64_t> size(element from, const char* key) {
    const auto found = number(from, key);
    if (found && (*found < 0 || *found > kMostBytes)) return odd_++, std::nullopt;
    return found;
  }

  void read_about() {
    state_.rank = number(root_, "rank").value_or(0);
    state_.world_size = number(root_, "world_size").value_or(0);
    state_.rank_source = text(root_, "rank_source");
    state_.host = text(root_, "host");
    state_.torch = text(root_, "torch");
    state_.device = text(root_, "device");
    state_.started_unix_ns = number(root_, "started_unix_ns").value_or(0);
    state_.steps_wanted = number(root_, "steps_wanted").value_or(0);
    state_.steps_done = number(root_, "steps_done").value_or(0);
    state_.steps_left_out = number(root_, "steps_left_out").value_or(0);
    state_.points_left_out = number(root_, "points_left_out").value_or(0);
    state_.allocator_reason = text(root_, "allocator_reason");
    if (root_["complete"].get(state_.complete) != simdjson::SUCCESS) state_.complete = false;
    array notes;
    if (root_["notes"].get(notes) != simdjson::SUCCESS) return;
    for (const element note : notes) {
      std::string_view said;
      bool repaired = false;
      if (note.get(said) == simdjson::SUCCESS) state_.notes.push_back(formats::visible(said, repaired));
    }
  }

  // Columns of one length; a node that stands before its parent is put below the whole.
  void read_nodes() {
    state_.nodes.emplace_back();
    array paths, parents, classes;
    element nodes;
    if (root_["nodes"].get(nodes) != simdjson::SUCCESS || nodes["path"].get(paths) != simdjson::SUCCESS ||
        nodes["parent"].get(parents) != simdjson::SUCCESS) {
      odd_++;
      return;
    }
    const bool classed = nodes["class"].get(classes) == simdjson::SUCCESS;
    auto parent = parents.begin();
    auto class_name = classed ? classes.begin() : array::iterator();
    for (const element path : paths) {
      MemoryNode node;
      std::string_view words;
      std::int64_t above = 0;
      bool repaired = false;
      if (path.get(words) == simdjson::SUCCESS) node.path = formats::visible(words, repaired);
      if (parent != parents.end()) {
        if ((*parent).get(above) != simdjson::SUCCESS) odd_++;
        ++parent;
      }
      if (classed && class_name != classes.end()) {
        if ((*class_name).get(words) == simdjson::SUCCESS) node.class_name = formats::visible(words, repaired);
        ++class_name;
      }
      add_node(std::move(node), above);
    }
  }

  void add_node(MemoryNode node, std::int64_t parent) {
    if (!had_root_) {  // the whole
      had_root_ = true;
      state_.nodes.front().class_name = std::move(node.class_name);
      return;
    }
    const auto known = static_cast<std::int64_t>(state_.nodes.size());
    if (parent < 0 || parent >= known) {
      odd_++;
      parent = 0;
    }
    node.parent = static_cast<std::uint32_t>(parent);
    node.depth = state_.nodes[node.parent].depth + 1;
    if (node.depth > kDeepest) {  // no model is; what draws trees need not care
      odd_++;
      node.parent = 0;
      node.depth = 1;
    }
    state_.nodes.push_back(std::move(node));
  }

  static MemoryCategory category(std::string_view name) {
    for (std::size_t i = 0; i < kMemoryCategories; i++) {
      std::string known(to_string(static_cast<MemoryCategory>(i)));
      std::replace(known.begin(), known.end(), ' ', '_');
      if (name == known) return static_cast<MemoryCategory>(i);
    }
    return MemoryCategory::unknown;
  }

  MemoryCategory known_category(std::string_view name) {
    const MemoryCategory found = category(name);
    if (found == MemoryCategory::unknown && name != "unknown") unknown_categories_++;
    return found;
  }

  MemoryMoment moment(element from) {
    return {number(from, "step").value_or(0), number(from, "micro_batch"), text(from, "event"),
            number(from, "unix_ns")};
  }

  CategoryBytes bytes(element from) {
    CategoryBytes out{};
    object members;
    if (from.get(members) != simdjson::SUCCESS) return odd_++, out;
    for (const auto& [name, value] : members) {
      std::int64_t found = 0;
      const bool fits = value.get(found) == simdjson::SUCCESS && found >= 0 && found <= kMostBytes;
      if (!fits) {
        odd_++;
        continue;
      }
      auto& sum = out[static_cast<std::size_t>(known_category(name))];
      sum = std::min(sum + found, kMostBytes);
    }
    return out;
  }

  // [node, own bytes, with those below]: the sums are made anew, from the nodes' own.
  MemoryTree tree(std::string_view name, element rows) {
    MemoryTree out{.category = known_category(name), .rows = {}};
    std::vector<std::int64_t> own(state_.nodes.size(), -1);
    array list;
    if (rows.get(list) != simdjson::SUCCESS) return odd_++, out;
    std::int64_t sum = 0;
    for (const element row : list) {
      std::int64_t node = 0, size = 0;
      const bool fits = row.at(0).get(node) == simdjson::SUCCESS && row.at(1).get(size) == simdjson::SUCCESS &&
                        node >= 0 && node < static_cast<std::int64_t>(own.size()) && size >= 0 &&
                        size <= kMostBytes - sum;
      if (!fits) {
        odd_++;
        continue;
      }
      auto& at = own[static_cast<std::size_t>(node)];
      at = std::max<std::int64_t>(at, 0) + size;
      sum += size;
    }
    add_up(own, out.rows);
    return out;
  }

  void add_up(const std::vector<std::int64_t>& own, std::vector<MemoryTreeRow>& rows) const {
    std::vector<std::int64_t> sums(own.size(), 0);
    std::vector<bool> used(own.size(), false);
    for (std::size_t node = own.size(); node-- > 0;) {
      if (own[node] < 0 && !used[node]) continue;
      used[node] = true;
      sums[node] += std::max<std::int64_t>(own[node], 0);
      if (node == 0) break;
      sums[state_.nodes[node].parent] += sums[node];
      used[state_.nodes[node].parent] = true;
    }
    for (std::size_t node = 0; node < own.size(); node++) {
      if (!used[node]) continue;
      rows.push_back({static_cast<std::uint32_t>(node), std::max<std::int64_t>(own[node], 0), sums[node]});
    }
  }

  MemoryLayout layout(element from) {
    MemoryLayout out{.moment = moment(from), .trees = {}};
    object trees;
    if (from["trees"].get(trees) != simdjson::SUCCESS) return odd_++, out;
    for (const auto& [name, rows] : trees) {
      MemoryTree one = tree(name, rows);
      if (one.bytes() > 0) out.trees.push_back(std::move(one));
    }
    std::stable_sort(out.trees.begin(), out.trees.end(),
                     [](const MemoryTree& a, const MemoryTree& b) { return a.category < b.category; });
    return out;
  }

  std::vector<MemoryLayout> layouts(const char* key) {
    std::vector<MemoryLayout> out;
    array list;
    if (root_[key].get(list) != simdjson::SUCCESS) return odd_++, out;
    for (const element one : list) out.push_back(layout(one));
    return out;
  }

  void read_largest() {
    object members;
    if (root_["largest"].get(members) != simdjson::SUCCESS) {
      odd_++;
      return;
    }
    for (const auto& [name, from] : members) {
      element rows;
      if (from["tree"].get(rows) != simdjson::SUCCESS) {
        odd_++;
        continue;
      }
      MemoryTree one = tree(name, rows);
      if (one.bytes() > 0) state_.largest.push_back({.moment = moment(from), .trees = {std::move(one)}});
    }
    std::stable_sort(state_.largest.begin(), state_.largest.end(), [](const MemoryLayout& a, const MemoryLayout& b) {
      return a.trees.front().category < b.trees.front().category;
    });
  }

  AllocatorFigures figures(element from) {
    return {.allocated_bytes = size(from, "allocated_bytes"),
            .requested_bytes = size(from, "requested_bytes"),
            .rounding_bytes = size(from, "rounding_bytes"),
            .reserved_bytes = size(from, "reserved_bytes"),
            .inactive_split_bytes = size(from, "inactive_split_bytes"),
            .peak_allocated_bytes = size(from, "peak_allocated_bytes"),
            .peak_reserved_bytes = size(from, "peak_reserved_bytes"),
            .device_used_bytes = size(from, "device_used_bytes"),
            .device_total_bytes = size(from, "device_total_bytes"),
            .non_torch_bytes = size(from, "non_torch_bytes")};
  }

  void read_points() {
    array list;
    if (root_["points"].get(list) != simdjson::SUCCESS) {
      odd_++;
      return;
    }
    for (const element from : list) {
      element told;
      if (from["bytes"].get(told) != simdjson::SUCCESS) {
        odd_++;
        continue;
      }
      MemoryPoint point{.moment = moment(from), .bytes = bytes(told), .devices = {}, .allocator = {}};
      object devices;
      if (from["devices"].get(devices) == simdjson::SUCCESS) {
        bool repaired = false;
        for (const auto& [name, of] : devices) point.devices.emplace_back(formats::visible(name, repaired), bytes(of));
      }
      if (from["allocator"].get(told) == simdjson::SUCCESS) point.allocator = figures(told);
      state_.points.push_back(std::move(point));
    }
  }

  void note(const char* code, Severity severity, std::string sentence, std::string advice, std::uint64_t count) {
    state_.issues.push_back(
        {code, severity, std::move(sentence), std::move(advice), count, state_.path, std::nullopt, std::nullopt});
  }

  void tell() {
    const std::int64_t version = number(root_, "schema_version").value_or(0);
    if (version > kVersion) {
      note("newer_memory_state", Severity::info,
           "memory_state.json has schema_version " + std::to_string(version) + ", this stepscope knows " +
               std::to_string(kVersion) + ": what is new in it is left out",
           "Use the stepscope that measured it, or a newer one", 1);
    }
    if (unknown_categories_ > 0) {
      note("memory_categories_unknown", Severity::info, "categories of memory that this version does not know",
           "Use the stepscope that measured it, or a newer one", unknown_categories_);
    }
    if (odd_ > 0) {
      note("memory_state_damaged", Severity::lost, "parts of the state of memory do not fit together and are left out",
           "Copy the file again, or measure again", odd_);
    }
  }

  element root_;
  MemoryState state_;
  bool had_root_ = false;
  std::uint64_t odd_ = 0, unknown_categories_ = 0;
};

// `why`: some of simdjson's end with a period.
Error malformed(const std::string& path, std::string why) {
  while (why.ends_with('.')) why.pop_back();
  return {ErrorKind::malformed, "is no whole memory_state.json: " + std::move(why), path, std::nullopt,
          "Copy the file again, or measure again: stepscope run --memory -- …"};
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions& options) {
  const Result<MemoryState> state = read_memory_state(path, options.max_text_bytes);
  if (!state) return fail(state.error());
  TraceRows rows(path);
  rows.trace.source = {.path = path, .format = std::string(kMemoryStateFiles), .writer = "stepscope"};
  std::error_code code;
  rows.trace.source.file_bytes = std::filesystem::file_size(path, code);
  rows.trace.source.events = state->points.size();
  rows.trace.rank.rank = state->rank;
  rows.trace.rank.world_size = state->world_size;
  if (state->rank_source != "single process") rows.trace.rank.source = RankSource::distributed_info;
  std::vector<Trace> traces;
  traces.push_back(std::move(rows.trace));
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "a state of memory has no events with arguments", trace.source.path,
               std::nullopt, "Use the tables of the answer memory_state"});
}

}  // namespace

Result<MemoryState> read_memory_state(const std::string& path, std::uint64_t max_text_bytes) {
  const Result<formats::FileText> file = formats::read_text(path, max_text_bytes > 0 ? max_text_bytes : kMostText);
  if (!file) return fail(file.error());
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(file->text).get(root)) return fail(malformed(path, error_message(error)));
  std::string_view kind;
  if (root["kind"].get(kind) != simdjson::SUCCESS || kind != "memory_state") {
    return fail(malformed(path, "it does not say kind memory_state"));
  }
  return File(root, path).read();
}

Reader memory_state_reader() {
  return {kMemoryStateFiles, "State of memory that stepscope run --memory measures (memory_state.json)", recognizes,
          read_file, no_text};
}

}  // namespace stepscope::read
