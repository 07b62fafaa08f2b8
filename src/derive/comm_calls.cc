#include "derive/comm_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "model/collective_work.h"
#include "model/lookup.h"

namespace stepscope::derive {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15u;
  return a ^ (a >> 29);
}
std::uint64_t mix(std::uint64_t a, std::string_view text) {
  for (const char c : text) a = mix(a, static_cast<unsigned char>(c));
  return a;
}

// "void foo<…>(…)" → "foo"; NCCL's kernels carry their variant before the first bracket.
std::string_view base_name(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  return name.substr(0, name.find_first_of("<("));
}

// The lane of calls that a library made on threads of the host.
constexpr std::string_view kHostCalls = "calls on the host";

bool is_host_library(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:");
}

// Sizes differ between the ranks of these.
bool same_size_everywhere(CollectiveKind kind) {
  return kind != CollectiveKind::all_to_all && kind != CollectiveKind::gather && kind != CollectiveKind::scatter &&
         kind != CollectiveKind::other;
}

class Calls {
 public:
  explicit Calls(const Trace& trace) : trace_(trace), call_of_(trace.collectives.size(), MatchMember::kNone) {}

  CommCalls take() {
    number_streams();
    for (std::uint32_t row = 0; row < trace_.device.size(); row++) {
      if (is_communication(row)) add_kernel(row);
    }
    const bool device = !out_.calls.empty();
    for (std::uint32_t row = 0; row < trace_.collectives.size(); row++) add_host_row(row, device);
    add_host_ranges();
    std::stable_sort(out_.calls.begin(), out_.calls.end(), [](const CommCall& a, const CommCall& b) {
      return std::pair(a.member.end_ns, a.member.start_ns) < std::pair(b.member.end_ns, b.member.start_ns);
    });
    return std::move(out_);
  }

 private:
  using LaneKey = std::tuple<std::string_view, std::string_view, std::int64_t, std::int64_t, std::int64_t>;

  bool is_communication(std::uint32_t row) const {
    return trace_.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::communication) &&
           trace_.kind(trace_.device.slice[row]) == SliceKind::kernel;
  }

  // Ranks number their streams differently; which of its streams with communication it is, they have in common.
  void number_streams() {
    for (std::uint32_t row = 0; row < trace_.device.size(); row++) {
      if (is_communication(row)) streams_.emplace(trace_.device.stream[row], 0);
    }
    int next = 0;
    for (auto& [stream, number] : streams_) number = next++;
  }

  std::uint32_t lane(const LaneKey& key, bool recorded) {
    const auto [at, added] = lanes_.emplace(key, static_cast<std::uint32_t>(out_.lanes.size()));
    if (added) {
      const auto& [name, ranks, size, source, target] = key;
      out_.lanes.push_back(
          {std::string(name), std::string(ranks), size == kAbsent ? 0 : size, source, target, recorded});
    }
    return at->second;
  }

  void describe(CommCall& call, std::uint32_t row) {
    const Collectives& all = trace_.collectives;
    call.member.collective = row;
    call.kind = collective_kind(trace_.strings[all.kind[row]]);
    call.sequence = all.sequence[row];
    call.bytes = collective_bytes(trace_, row).value_or(Match::kUnknownBytes);
    call.elements = std::max<std::int64_t>({all.in_elements[row], all.out_elements[row], 0});
    std::int64_t source = -1, target = -1;
    if (call.kind == CollectiveKind::send || call.kind == CollectiveKind::receive) {
      const std::int64_t peer = all.peer[row] == kAbsent ? -2 : all.peer[row];
      source = call.kind == CollectiveKind::send ? trace_.rank.rank : peer;
      target = call.kind == CollectiveKind::send ? peer : trace_.rank.rank;
      if (peer < 0) source = target = -2;  // the ends of a pipe, but not of which
      call.kind = CollectiveKind::send;
      call.sequence = kAbsent;  // sender and receiver count for themselves
    }
    call.lane = lane({trace_.strings[all.group_name[row]], trace_.strings[all.group_ranks[row]], all.group_size[row],
                      source, target},
                     true);
    call.token = mix(mix(static_cast<std::uint64_t>(call.kind), trace_.strings[all.dtype[row]]),
                     same_size_everywhere(call.kind) ? static_cast<std::uint64_t>(call.elements) : 0);
    if (call.kind == CollectiveKind::other) call.token = mix(call.token, trace_.strings[all.kind[row]]);
  }

  // What the name says where nothing is recorded. `above`: the range around the launch, which says more than NCCL's
  // kernel for all point-to-point work does.
  void describe_by_name(CommCall& call, std::string_view name, std::string_view above, std::string_view lane_name) {
    const bool says_more = above.starts_with("nccl:") || above.starts_with("c10d::");
    call.kind = collective_kind(says_more ? above : name);
    if (call.kind == CollectiveKind::receive) call.kind = CollectiveKind::send;
    const bool pipe = call.kind == CollectiveKind::send;
    call.token = mix(mix(static_cast<std::uint64_t>(call.kind), pipe ? "" : base_name(name)), pipe ? "" : above);
    call.lane = lane({lane_name, "", only_group_size(), pipe ? -2 : -1, pipe ? -2 : -1}, false);
  }

  // Where all process groups of the rank are as large, every call is of such a one.
  std::int64_t only_group_size() const {
    if (trace_.groups.empty() || trace_.groups.front().size <= 0) return kAbsent;
    const std::int64_t size = trace_.groups.front().size;
    const auto same = [&](const ProcessGroup& group) { return group.size == size; };
    return std::all_of(trace_.groups.begin(), trace_.groups.end(), same) ? size : kAbsent;
  }

  void add_kernel(std::uint32_t row) {
    const std::uint32_t host = host_collective_of(trace_, row);
    const std::uint32_t known = host != kNoCollective ? host : collective_of(trace_, row);
    const SliceId slice = trace_.device.slice[row];
    const std::int64_t start = trace_.slices.start_ns[slice], end = trace_.slices.end_ns(slice);
    if (known != kNoCollective && call_of_[known] != MatchMember::kNone) {
      MatchMember& member = out_.calls[call_of_[known]].member;
      member.start_ns = std::min(member.start_ns, start);
      member.end_ns = std::max(member.end_ns, end);
      mark_own(row, call_of_[known]);
      return;
    }
    CommCall call;
    call.member = {start, end, 0, MatchMember::kNone, row};
    if (known != kNoCollective) {
      describe(call, known);
      call_of_[known] = static_cast<std::uint32_t>(out_.calls.size());
      mark_own(row, call_of_[known]);
    } else {
      const SliceId op = trace_.device.op[row];
      const std::string_view above = op == SliceId::none ? std::string_view() : trace_.name(op);
      const int stream = streams_.at(trace_.device.stream[row]);
      describe_by_name(call, trace_.name(slice), above, stream_names(stream));
    }
    out_.calls.push_back(call);
  }
  // The kernel's own metadata, if any, is that of the same call.
  void mark_own(std::uint32_t row, std::uint32_t call) {
    const std::uint32_t own = collective_of(trace_, row);
    if (own != kNoCollective) call_of_[own] = call;
  }
  std::string_view stream_names(int number) {
    auto& name = names_[number];
    if (name.empty()) name = "communication stream " + std::to_string(number);
    return name;
  }

  void add_host_row(std::uint32_t row, bool device) {
    const SliceId slice = trace_.collectives.slice[row];
    if (call_of_[row] != MatchMember::kNone || is_device_work(trace_.kind(slice))) return;
    const std::string_view kind = trace_.strings[trace_.collectives.kind[row]];
    if (kind.empty() || kind == "wait" || kind == "init") return;
    CommCall call;
    call.member = {trace_.slices.start_ns[slice], trace_.slices.end_ns(slice), 0, MatchMember::kNone,
                   MatchMember::kNone};
    call.timed = !device;
    describe(call, row);
    out_.calls.push_back(call);
  }

  void add_host_ranges() {
    std::vector<std::uint8_t> wanted(trace_.strings.size());
    bool any = false;
    for (std::uint32_t i = 0; i < wanted.size(); i++) {
      wanted[i] = is_host_library(trace_.strings[static_cast<StringId>(i)]);
      any = any || wanted[i] != 0;
    }
    if (!any) return;
    for (std::uint32_t i = 0; i < trace_.slices.size(); i++) {
      const StringId name = trace_.slices.name[i];
      if (name == StringId::none || wanted[static_cast<std::uint32_t>(name)] == 0) continue;
      const auto slice = static_cast<SliceId>(i);
      if (trace_.kind(slice) == SliceKind::gpu_user_annotation) continue;
      CommCall call;
      call.member = {trace_.slices.start_ns[i], trace_.slices.end_ns(slice), 0, MatchMember::kNone, MatchMember::kNone};
      describe_by_name(call, trace_.strings[name], "", kHostCalls);
      call.concurrent = true;
      add_size(call, slice);
      out_.calls.push_back(call);
    }
  }

  // What such a call was given: one thread may end the second of two calls before another ends the first, but rarely
  // are both as large.
  void add_size(CommCall& call, SliceId slice) {
    const Ops& ops = trace_.ops;
    const std::size_t op = row_of(ops.slice, slice);
    if (op >= ops.size() || ops.input_dims[op] == StringId::none || ops.input_types[op] == StringId::none) return;
    const auto key = std::pair(ops.input_dims[op], ops.input_types[op]);
    const auto [known, added] = sizes_.try_emplace(key);
    if (added) known->second = largest_input_bytes(trace_.strings[key.first], trace_.strings[key.second]);
    if (!known->second || *known->second <= 0) return;
    if (same_size_everywhere(call.kind)) call.token = mix(call.token, static_cast<std::uint64_t>(*known->second));
    const std::int64_t size = only_group_size();
    switch (call.kind) {
      case CollectiveKind::all_gather:  // each gives its part
        if (size > 0 && *known->second < INT64_MAX / size) call.bytes = *known->second * size;
        return;
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
      case CollectiveKind::other: return;  // part or whole, by the rank
      default: call.bytes = *known->second;
    }
  }

  const Trace& trace_;
  std::vector<std::uint32_t> call_of_;  // per row of Trace::collectives
  std::map<std::int64_t, int> streams_;
  std::map<int, std::string> names_;
  std::map<std::pair<StringId, StringId>, std::optional<std::int64_t>> sizes_;  // of texts of sizes and types
  std::map<LaneKey, std::uint32_t> lanes_;                                      // a handful of groups
  CommCalls out_;
};

}  // namespace

CommCalls comm_calls(const Trace& trace) { return Calls(trace).take(); }

}  // namespace stepscope::derive
