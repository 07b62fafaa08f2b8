#include "costs/work_calls.h"

#include <algorithm>
#include <unordered_map>

#include "base/key_index.h"
#include "costs/time_shares.h"
#include "model/element_types.h"
#include "model/op_calls.h"

namespace stepscope::costs {
namespace {

constexpr std::uint32_t kNone = WorkCall::none;
constexpr std::string_view kOrdinary = "float32";  // what is no product is computed by ordinary cores

class Finder {
 public:
  explicit Finder(const RankCosts& costs) : costs_(costs), trace_(*costs.trace), inputs_(trace_) {
    rows_.assign(trace_.slices.size(), kNone);
    for (std::uint32_t row = 0; row < trace_.ops.size(); row++)
      rows_[static_cast<std::size_t>(trace_.ops.slice[row])] = row;
    call_at_.assign(trace_.slices.size(), kNone);
    models_.resize(trace_.strings.size());
  }

  WorkCalls find() {
    look_below();
    each_host_slice([&](SliceId id) { visit(id); });
    if (costs_.time.device) {
      add_kernels();
    } else {
      add_operators();
    }
    for (WorkCall& call : out_.all) measure(call);
    drop_unknown();
    std::stable_sort(out_.unmodelled.begin(), out_.unmodelled.end(),
                     [](const Unmodelled& a, const Unmodelled& b) { return a.time_ns > b.time_ns; });
    return std::move(out_);
  }

 private:
  template <class Visit>
  void each_host_slice(const Visit& visit) {
    for (std::size_t track = 0; track + 1 < trace_.track_begin.size(); track++) {
      if (trace_.tracks[track].device) continue;
      for (std::uint32_t at = trace_.track_begin[track]; at < trace_.track_begin[track + 1]; at++)
        visit(trace_.by_track[at]);
    }
  }

  const TrafficModel* model(SliceId id) {
    const StringId name = trace_.slices.name[id];
    if (trace_.kind(id) != SliceKind::cpu_op || name == StringId::none) return nullptr;
    std::optional<const TrafficModel*>& known = models_[static_cast<std::size_t>(name)];
    if (!known) known = traffic_of(trace_.strings[name]);
    return *known;
  }

  // Marks what runs something with a model, for those operators that only count where nothing below them does.
  void look_below() {
    has_model_below_.assign(trace_.slices.size(), false);
    each_host_slice([&](SliceId id) {
      if (model(id) == nullptr) return;
      for (SliceId at = trace_.slices.parent[id]; at != SliceId::none; at = trace_.slices.parent[at]) {
        if (has_model_below_[static_cast<std::size_t>(at)]) return;
        has_model_below_[static_cast<std::size_t>(at)] = true;
      }
    });
  }

  std::uint32_t product_of(SliceId id) const {
    const std::uint32_t product = costs_.products.product_at[static_cast<std::size_t>(id)];
    return product != Products::none && costs_.products.all[product].slice == id ? product : Products::none;
  }

  void visit(SliceId id) {
    const auto at = static_cast<std::size_t>(id);
    if (const SliceId parent = trace_.slices.parent[id]; parent != SliceId::none)
      call_at_[at] = call_at_[static_cast<std::size_t>(parent)];
    if (call_at_[at] != kNone || costs_.products.known[at] == Known::not_run) return;
    const std::uint32_t product = product_of(id);
    const TrafficModel* found = model(id);
    if (product == Products::none && (found == nullptr || (found->unless_below && has_model_below_[at]))) return;
    call_at_[at] = static_cast<std::uint32_t>(out_.all.size());
    WorkCall call{.slice = id, .row = rows_[at], .op = trace_.name(id), .type = kOrdinary};
    if (found != nullptr) call.family = found->family;
    if (product != Products::none) {
      const Product& of = costs_.products.all[product];
      call.op = of.op;
      call.backward_of_op = of.custom && of.part == Part::backward;
      call.type = costs_.types[product];
      call.family = of.custom ? Family::custom : found == nullptr ? Family::matrices : found->family;
      call.work = {of.flop, of.bytes};
    }
    out_.all.push_back(call);
  }

  // ---- time ----

  void add_unmodelled(StringId name, NotKnown why, std::uint64_t calls, std::int64_t time_ns) {
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(name)} << 2 | static_cast<std::uint64_t>(why);
    const std::uint32_t row = unmodelled_rows_[key];
    if (row == out_.unmodelled.size()) out_.unmodelled.push_back({.name = name, .why = why});
    out_.unmodelled[row].calls += calls;
    out_.unmodelled[row].time_ns += time_ns;
  }

  void add_kernels() {
    out_.call_of_kernel.assign(trace_.device.size(), kNone);
    for (std::uint32_t row = 0; row < trace_.device.size(); row++) {
      if (!computes(trace_, row)) continue;
      const SliceId kernel = trace_.device.slice[row], op = trace_.device.op[row];
      const std::int64_t time_ns = trace_.slices.dur_ns[kernel];
      const std::uint32_t at = op == SliceId::none ? kNone : call_at_[static_cast<std::size_t>(op)];
      if (at == kNone) {
        const bool known = op != SliceId::none && trace_.kind(op) == SliceKind::cpu_op;
        add_unmodelled(trace_.slices.name[known ? op : kernel], known ? NotKnown::no_model : NotKnown::no_operator, 1,
                       time_ns);
        continue;
      }
      WorkCall& call = out_.all[at];
      out_.call_of_kernel[row] = at;
      call.time_ns += time_ns;
      call.kernels++;
      if (call.kernel == kNone || time_ns > trace_.slices.dur_ns[trace_.device.slice[call.kernel]]) call.kernel = row;
    }
  }

  void add_operators() {
    for (WorkCall& call : out_.all) call.time_ns = trace_.slices.dur_ns[call.slice];
    const OpCalls calls = op_calls(trace_);
    for (std::size_t i = 0; i < calls.size(); i++) {
      const auto at = static_cast<std::size_t>(calls.slice[i]);
      if (call_at_[at] != kNone || costs_.products.known[at] == Known::not_run) continue;
      add_unmodelled(trace_.slices.name[calls.slice[i]], NotKnown::no_model, 1, calls.host_self_ns[i]);
    }
  }

  // ---- work ----

  void measure(WorkCall& call) {
    const TrafficModel* found = model(call.slice);
    if (found == nullptr || call.row == kNone || call.work.bytes) return;
    std::optional<std::int64_t> list_bytes;
    if (call.kernel != kNone) list_bytes = element_bytes_of_kernel(trace_.name(trace_.device.slice[call.kernel]));
    const Inputs inputs = inputs_.of(call.row);
    std::vector<std::string_view> types;
    for (std::size_t at = 0; at < inputs.shapes.size(); at++) types.push_back(inputs_.type(call.row, at));
    const Work work = found->work(Operands(inputs, std::move(types), list_bytes, is_in_place(trace_.name(call.slice))));
    if (!call.work.flop) call.work.flop = work.flop;
    call.work.bytes = work.bytes;
  }

  // Calls of which neither FLOP nor bytes are known, and those that launched nothing.
  void drop_unknown() {
    std::vector<std::uint32_t> kept(out_.all.size(), kNone);
    std::vector<WorkCall> all;
    for (std::size_t i = 0; i < out_.all.size(); i++) {
      const WorkCall& call = out_.all[i];
      const bool known = call.work.bytes || call.work.flop.value_or(0) > 0;
      if (known && call.time_ns > 0) {
        kept[i] = static_cast<std::uint32_t>(all.size());
        all.push_back(call);
      } else if (call.time_ns > 0) {
        add_unmodelled(trace_.slices.name[call.slice], NotKnown::no_sizes, std::max<std::uint64_t>(call.kernels, 1),
                       call.time_ns);
      }
    }
    for (std::uint32_t& at : out_.call_of_kernel) at = at == kNone ? kNone : kept[at];
    out_.all = std::move(all);
  }

  const RankCosts& costs_;
  const Trace& trace_;
  TraceInputs inputs_;
  std::vector<std::uint32_t> rows_;                         // per slice: its row of ops
  std::vector<std::uint32_t> call_at_;                      // per slice
  std::vector<bool> has_model_below_;                       // per slice
  std::vector<std::optional<const TrafficModel*>> models_;  // per name
  KeyIndex unmodelled_rows_;
  WorkCalls out_;
};

}  // namespace

std::int64_t WorkCalls::known_ns() const {
  std::int64_t sum = 0;
  for (const WorkCall& call : all) sum += call.time_ns;
  return sum;
}

std::int64_t WorkCalls::all_ns() const {
  std::int64_t sum = known_ns();
  for (const Unmodelled& one : unmodelled) sum += one.time_ns;
  return sum;
}

WorkCalls work_calls(const RankCosts& costs) { return Finder(costs).find(); }

}  // namespace stepscope::costs
