#include "simulate/selection.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <unordered_set>

#include "base/did_you_mean.h"
#include "base/name_pattern.h"
#include "base/name_verdicts.h"
#include "model/module_paths.h"
#include "model/windows.h"

namespace stepscope::simulate {
namespace {

constexpr std::array<std::string_view, 6> kKinds{"kernel", "op", "host", "module", "phase", "rank"};

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Whether a name is meant, asked once per name of a trace.
class Names {
 public:
  Names(const Trace& trace, const NamePattern& pattern, bool exact, std::string_view text)
      : trace_(trace), verdicts_(trace.strings, 0, [&pattern, exact, text](std::string_view name) -> std::uint8_t {
          return (exact ? name == text : pattern.fits(name)) ? 2 : 1;
        }) {}
  bool operator()(SliceId slice) { return verdicts_(trace_.slices.name[slice]) == 2; }

 private:
  const Trace& trace_;
  NameVerdicts<std::uint8_t, std::function<std::uint8_t(std::string_view)>> verdicts_;
};

class Selector {
 public:
  Selector(const Run& run, const ReplayGraph& graph, std::string_view kind, std::string_view text, NamePattern pattern)
      : run_(run), graph_(graph), kind_(kind), text_(text), pattern_(std::move(pattern)) {
    out_.nodes.assign(graph.size(), 0);
    out_.call_ns.assign(graph.size(), 0);
  }

  Selection take() {
    const std::size_t traces = timelines(run_).size();
    std::vector<ModulePaths> modules;
    for (std::size_t t = 0; t < traces; t++) {
      if (kind_ == "module") modules.emplace_back(run_.traces[t]);
      exact_ = exact_ || (kind_ == "module" ? has_module(run_.traces[t], modules[t]) : has_name(run_.traces[t]));
    }
    for (std::uint32_t t = 0; t < traces; t++) {
      trace_ = &run_.traces[t];
      if (text_ != "*" && (kind_ == "op" || kind_ == "host")) {
        select_ranges(t);
      } else if (kind_ == "module") {
        select_modules(t, modules[t]);
      } else {
        select_nodes(t);
      }
    }
    return std::move(out_);
  }

 private:
  bool has_name(const Trace& trace) const {
    if (kind_ != "op" && kind_ != "host" && kind_ != "kernel") return false;
    for (const StringId name : trace.slices.name.span()) {
      if (name != StringId::none && trace.strings[name] == text_) return true;
    }
    return false;
  }
  // By its path or its class.
  bool is_module(const Trace& trace, const ModulePaths::Node& module) const {
    return module.path == text_ || (module.type != StringId::none && trace.strings[module.type] == text_);
  }
  bool fits_class(const ModulePaths::Node& module) const {
    return module.type != StringId::none && pattern_.fits(trace_->strings[module.type]);
  }
  bool has_module(const Trace& trace, const ModulePaths& paths) const {
    return std::any_of(paths.nodes().begin(), paths.nodes().end(),
                       [&](const ModulePaths::Node& module) { return is_module(trace, module); });
  }
  void note(SliceId slice) {
    const std::string_view name = trace_->name(slice);
    if (noted_.insert(name).second) out_.names.emplace_back(name);
  }
  void mark(std::uint32_t node, std::int64_t call_ns) {
    if (out_.nodes[node] != 0) return;
    out_.nodes[node] = 1;
    out_.call_ns[node] = call_ns;
    (graph_.lanes[graph_.lane[node]].device ? out_.device_ns : out_.host_ns) += graph_.costs.cost_ns[node];
  }
  template <class Is>
  std::vector<SliceId> calls_meant(const Is& is);
  template <class CallOf>
  void mark_calls(std::uint32_t trace, const CallOf& call_of);
  void select_ranges(std::uint32_t trace);
  void select_modules(std::uint32_t trace, const ModulePaths& paths);
  void select_nodes(std::uint32_t trace);
  bool fits_node(std::uint32_t node, Names& names) const;

  const Run& run_;
  const ReplayGraph& graph_;
  std::string_view kind_, text_;
  NamePattern pattern_;
  bool exact_ = false;
  const Trace* trace_ = nullptr;
  std::unordered_set<std::string_view> noted_;
  Selection out_;
};

// Per slice the outermost call around it that is meant, or itself; none: there is none.
template <class Is>
std::vector<SliceId> Selector::calls_meant(const Is& is) {
  const Trace& trace = *trace_;
  std::vector<SliceId> call(trace.slices.size(), SliceId::none);
  for (const SliceId slice : trace.by_track.span()) {
    const SliceId parent = trace.slices.parent[slice];
    SliceId& own = call[static_cast<std::size_t>(slice)];
    if (parent != SliceId::none) own = call[static_cast<std::size_t>(parent)];
    if (own != SliceId::none || !is(slice)) continue;
    own = slice;
    out_.calls++;
    note(slice);
  }
  return call;
}

// All that runs in a call, and the device work that it launches.
template <class CallOf>
void Selector::mark_calls(std::uint32_t t, const CallOf& call_of) {
  for (const Lane& lane : graph_.lanes) {
    if (lane.trace != t || (lane.device && kind_ == "host")) continue;
    for (const std::uint32_t node : lane.nodes) {
      const SliceId slice = lane.device ? trace_->device.op[graph_.row[node]] : graph_.slice[node];
      const SliceId call = slice == SliceId::none ? slice : call_of(slice);
      if (call != SliceId::none) mark(node, trace_->slices.dur_ns[call]);
    }
  }
}

void Selector::select_ranges(std::uint32_t t) {
  const Trace& trace = *trace_;
  Names names(trace, pattern_, exact_, text_);
  const std::vector<SliceId> call = calls_meant([&](SliceId slice) {
    return !trace.tracks[static_cast<std::size_t>(trace.slices.track[slice])].device && names(slice);
  });
  mark_calls(t, [&](SliceId slice) { return call[static_cast<std::size_t>(slice)]; });
}

// With all that they call, and their backward pass.
void Selector::select_modules(std::uint32_t t, const ModulePaths& paths) {
  const Trace& trace = *trace_;
  std::vector<std::uint8_t> meant(paths.nodes().size(), 0);
  for (std::size_t i = 0; i < meant.size(); i++) {  // parents before what is in them
    const ModulePaths::Node& module = paths.nodes()[i];
    const bool fits =
        text_ == "*" || (exact_ ? is_module(trace, module) : pattern_.fits(module.path) || fits_class(module));
    meant[i] = fits || (module.parent != ModulePaths::none && meant[module.parent] != 0) ? 1 : 0;
  }
  std::unordered_set<SliceId> modules;
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
    if (meant[paths.node_of_call(row)] != 0) modules.insert(trace.modules[row].slice);
  }
  const std::vector<SliceId> call = calls_meant([&](SliceId slice) { return modules.contains(slice); });
  mark_calls(t, [&](SliceId slice) {
    if (const SliceId around = call[static_cast<std::size_t>(slice)]; around != SliceId::none) return around;
    const SliceId forward = paths.forward_of(slice);
    return forward == SliceId::none ? forward : call[static_cast<std::size_t>(forward)];
  });
}

bool Selector::fits_node(std::uint32_t node, Names& names) const {
  const std::uint32_t row = graph_.row[node];
  const bool device = graph_.lanes[graph_.lane[node]].device;
  const SliceId slice = graph_.slice[node];
  if (text_ == "*") return kind_ == "kernel" ? device : kind_ != "host" || !device;
  if (kind_ == "rank") return std::to_string(trace_->rank.rank) == text_;
  if (kind_ == "phase") {
    const std::uint8_t phase = device                   ? trace_->device.phase[row]
                               : slice == SliceId::none ? static_cast<std::uint8_t>(Phase::other)
                                                        : trace_->slices.phase[slice];
    return to_string(static_cast<Phase>(phase)) == text_;
  }
  if (!device) return false;
  if (names(slice)) return true;
  if (exact_) return false;
  const ClassRule& rule = trace_->class_rules[trace_->device.rule[row]];
  return same_word(rule.family, text_) || rule.name == text_;
}

void Selector::select_nodes(std::uint32_t t) {
  Names names(*trace_, pattern_, exact_, text_);
  for (const Lane& lane : graph_.lanes) {
    if (lane.trace != t) continue;
    for (const std::uint32_t node : lane.nodes) {
      if (!fits_node(node, names)) continue;
      mark(node, graph_.costs.cost_ns[node]);
      if (graph_.role[node] != NodeRole::arrival) out_.calls++;
      if (kind_ == "kernel" && text_ != "*") note(graph_.slice[node]);
    }
  }
}

}  // namespace

Result<Selection> select(const Run& run, const ReplayGraph& graph, std::string_view target) {
  const std::size_t colon = target.find(':');
  const std::string kind(target.substr(0, colon));
  if (colon == std::string_view::npos || std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    Error error = unknown_name("kind of target", kind, kKinds);
    error.hint += (error.hint.empty() ? "" : "; ") + std::string("write kernel:gemm, op:aten::sort or host:collate");
    return fail(std::move(error));
  }
  const std::string_view text = target.substr(colon + 1);
  if (text.empty()) {
    return fail({ErrorKind::usage, "no name stands behind '" + std::string(target) + "'", "", std::nullopt,
                 "Write what is meant, such as kernel:gemm"});
  }
  Result<NamePattern> pattern = NamePattern::parse(text);
  if (!pattern) {
    return fail({ErrorKind::usage, std::string(target) + ": " + pattern.error().message, "", std::nullopt,
                 pattern.error().hint});
  }
  return Selector(run, graph, kind, text, *std::move(pattern)).take();
}

}  // namespace stepscope::simulate
