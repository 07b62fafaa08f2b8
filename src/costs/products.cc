#include "costs/products.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/name_verdicts.h"

namespace stepscope::costs {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// What a name says, as bits.
enum Word : std::uint8_t {
  kNode = 1,      // a node of autograd's graph runs
  kCompiler = 2,  // the compiler is at work
  kDetach = 4,    // an input is kept for backward
  kAten = 8,
  kMath = 16,  // attention made of single products
  kUnasked = 255,
};

std::uint8_t words_of(std::string_view name) {
  std::uint8_t words = 0;
  if (name.starts_with("autograd::engine::evaluate_function: ")) words |= kNode;
  if (name.ends_with(" (dynamo_timed)")) words |= kCompiler;
  if (name == "aten::detach" || name == "detach") words |= kDetach;
  if (name.starts_with("aten::")) words |= kAten;
  if (name == "aten::_scaled_dot_product_attention_math") words |= kMath;
  return words;
}

// A slice on a host thread, with what the slices around it say.
struct State {
  std::uint32_t node = kNone;  // the innermost one at or above it, an index of nodes
  bool compiling = false;      // below the compiler
  bool tracked = false;        // it, or one between it and its node, is kept for another backward
  bool causal = false;         // below attention under a causal mask
  bool worked = false;         // something but detach ran below it
  bool above_formula = false;  // an operator with a formula is below it
};

struct Node {
  SliceId slice;
  std::uint32_t outer;
  bool tracked;            // as in State, at its own place in the node around it
  bool own = false;        // gradients of its own ran in it, which are not tracked
  std::uint32_t last = 0;  // its last tracked operator, as a place in by_track; 0: none
  std::int64_t sequence = kAbsent;
};

class Walk {
 public:
  explicit Walk(const Trace& trace) : trace_(trace), inputs_(trace), state_(trace.slices.size()) {
    rows_.assign(trace.slices.size(), kNone);
    for (std::uint32_t row = 0; row < trace.ops.size(); row++) {
      rows_[static_cast<std::size_t>(trace.ops.slice[row])] = row;
    }
    formulas_.resize(trace.strings.size());
    out_.known.assign(trace.slices.size(), Known::nothing);
    out_.product_at.assign(trace.slices.size(), Products::none);
  }

  Products run() {
    place_.push_back(SliceId::none);  // 0 is no place
    each_host_slice([&](SliceId id) { enter(id); });
    for (std::size_t i = nodes_.size(); i-- > 0;) close(nodes_[i]);
    for (std::size_t at = place_.size(); at-- > 1;) look_below(static_cast<std::uint32_t>(at));
    std::reverse(candidates_.begin(), candidates_.end());
    learn_gradients();
    for (std::uint32_t at = 1; at < place_.size(); at++) count(at);
    return std::move(out_);
  }

 private:
  template <class Visit>
  void each_host_slice(const Visit& visit) {
    for (std::size_t track = 0; track + 1 < trace_.track_begin.size(); track++) {
      if (trace_.tracks[track].device) continue;
      for (std::uint32_t at = trace_.track_begin[track]; at < trace_.track_begin[track + 1]; at++) {
        visit(trace_.by_track[at]);
      }
    }
  }

  State& state(SliceId id) { return state_[static_cast<std::size_t>(id)]; }
  std::uint32_t row(SliceId id) const { return rows_[static_cast<std::size_t>(id)]; }
  bool is_op(SliceId id) const { return trace_.kind(id) == SliceKind::cpu_op; }
  bool says(SliceId id, Word word) { return (words_(trace_.slices.name[id]) & word) != 0; }

  // Autograd keeps it for a later backward although it runs in one: a forward that runs again, or create_graph=True.
  bool is_tracked(SliceId id) const {
    const std::uint32_t at = row(id);
    if (at == kNone || !trace_.ops.sequence.has(at)) return false;
    return !trace_.ops.fwd_thread.has(at) || trace_.ops.fwd_thread[at] == 0;
  }

  std::int64_t sequence(SliceId id) const { return row(id) == kNone ? kAbsent : trace_.ops.sequence[row(id)]; }

  bool asks_for_causal(SliceId id) {
    if (!says(id, kMath) || row(id) == kNone) return false;
    const auto causal = parse_truths(inputs_.of(row(id)).value(5));
    if (!causal) out_.masks_known = false;
    return causal && causal->front();
  }

  void enter(SliceId id) {
    const SliceId parent = trace_.slices.parent[id];
    const State above = parent == SliceId::none ? State() : state(parent);
    State& here = state(id);
    place_.push_back(id);
    here.node = above.node;
    here.compiling = above.compiling || (parent != SliceId::none && says(parent, kCompiler));
    here.causal = above.causal || (parent != SliceId::none && is_op(parent) && asks_for_causal(parent));
    const bool may_be_tracked = above.node != kNone && is_tracked(id);
    here.tracked = above.tracked || may_be_tracked;
    if (may_be_tracked) nodes_[above.node].last = static_cast<std::uint32_t>(place_.size() - 1);
    if (here.causal && sequence(id) != kAbsent) causal_sequences_.insert(sequence(id));
    if (is_op(id) && says(id, kNode)) {
      nodes_.push_back({.slice = id, .outer = above.node, .tracked = here.tracked, .sequence = sequence(id)});
      here.node = static_cast<std::uint32_t>(nodes_.size() - 1);
      here.tracked = false;
    } else if (here.node != kNone && !here.tracked && is_op(id) && says(id, kAten)) {
      nodes_[here.node].own = true;
    }
  }

  // Nodes within nodes come behind them: from the last to the first each tells the one around it.
  void close(const Node& node) {
    if (node.outer == kNone) return;
    Node& outer = nodes_[node.outer];
    outer.last = std::max(outer.last, node.last);
    outer.own = outer.own || (node.own && !node.tracked);
  }

  // The last tracked operator of its node, and nothing but detach below it.
  bool was_left(std::uint32_t place) {
    const State& here = state(place_[place]);
    return here.node != kNone && nodes_[here.node].last == place && !here.worked;
  }

  const Formula* formula(SliceId id) {
    const StringId name = trace_.slices.name[id];
    if (!is_op(id) || name == StringId::none) return nullptr;
    std::optional<const Formula*>& known = formulas_[static_cast<std::size_t>(name)];
    if (!known) known = formula_of(trace_.strings[name]);
    return *known;
  }

  // Children come before their callers here.
  void look_below(std::uint32_t place) {
    const SliceId id = place_[place], parent = trace_.slices.parent[id];
    const Formula* found = formula(id);
    State& here = state(id);
    if (found != nullptr && !(found->at_most && here.above_formula)) candidates_.push_back(place);
    if (parent == SliceId::none) return;
    State& above = state(parent);
    const SliceKind kind = trace_.kind(id);
    const bool runs = kind == SliceKind::cpu_op || kind == SliceKind::user_annotation || kind == SliceKind::runtime;
    above.worked = above.worked || here.worked || (runs && !says(id, kDetach));
    above.above_formula = above.above_formula || here.above_formula || found != nullptr;
  }

  // Older recordings have no values of arguments: the gradient of a convolution's output says how large this was.
  void learn_gradients() {
    for (const std::uint32_t place : candidates_) {
      const SliceId id = place_[place];
      if (trace_.name(id) != "aten::convolution_backward" || row(id) == kNone || state(id).node == kNone) continue;
      const std::int64_t number = nodes_[state(id).node].sequence;
      const Sizes* gradient = inputs_.of(row(id)).tensor(0);
      if (number != kAbsent && gradient != nullptr) gradients_[number] = gradient;
    }
  }

  std::optional<std::int64_t> flop(const Formula& found, SliceId id) {
    if (row(id) == kNone) return std::nullopt;
    const Inputs inputs = inputs_.of(row(id));
    const auto known = found.flop(inputs);
    if (known || found.op != "aten::convolution" || !inputs.values.empty()) return known;
    const auto gradient = gradients_.find(sequence(id));
    return gradient == gradients_.end() ? std::nullopt : convolution_by_gradient(inputs, *gradient->second);
  }

  Part part(SliceId id) {
    const State& here = state(id);
    if (here.node == kNone) return Part::forward;
    // With create_graph=True the whole of a node is tracked, else its own gradients are not.
    return here.tracked && nodes_[here.node].own ? Part::recompute : Part::backward;
  }

  std::int64_t masked(const Formula& found, SliceId id, std::int64_t flop) {
    const State& here = state(id);
    const bool in_causal_node = here.node != kNone && causal_sequences_.contains(nodes_[here.node].sequence);
    if (here.causal || (in_causal_node && part(id) == Part::backward)) return flop / 2;
    const auto causal = is_causal(found, inputs_.of(row(id)));
    if (!causal) out_.masks_known = false;
    return causal.value_or(false) ? flop / 2 : 0;
  }

  Known count_op(const Formula& found, std::uint32_t place) {
    const SliceId id = place_[place];
    const auto known = flop(found, id);
    if (!known) {
      out_.calls_without_shapes[static_cast<std::size_t>(part(id))]++;
      return Known::no_shapes;
    }
    out_.product_at[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(out_.all.size());
    const std::uint32_t node = state(id).node;
    out_.all.push_back({id, row(id), &found, *known, masked(found, id, *known), part(id),
                        node == kNone ? SliceId::none : nodes_[node].slice});
    return Known::counted;
  }

  void count(std::uint32_t place) {
    const SliceId id = place_[place], parent = trace_.slices.parent[id];
    Known& known = out_.known[static_cast<std::size_t>(id)];
    if (parent != SliceId::none) {
      known = out_.known[static_cast<std::size_t>(parent)];
      out_.product_at[static_cast<std::size_t>(id)] = out_.product_at[static_cast<std::size_t>(parent)];
    }
    const bool candidate = next_ < candidates_.size() && candidates_[next_] == place;
    if (candidate) next_++;
    if (known == Known::nothing && is_op(id)) known = Known::no_formula;
    if (state(id).compiling || says(id, kCompiler)) known = Known::not_run;
    if (!candidate || known != Known::no_formula) return;
    known = was_left(place) ? Known::not_run : count_op(*formula(id), place);
  }

  const Trace& trace_;
  TraceInputs inputs_;
  NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)> words_{trace_.strings, kUnasked, words_of};
  std::vector<std::optional<const Formula*>> formulas_;  // per name
  std::vector<std::uint32_t> rows_;                      // per slice: its row of ops
  std::vector<State> state_;                             // per slice
  std::vector<SliceId> place_;                           // slices of host threads, callers before what they call
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> candidates_;  // places of operators with a formula
  std::size_t next_ = 0;
  std::set<std::int64_t> causal_sequences_;  // of what attention under a causal mask was made of
  std::map<std::int64_t, const Sizes*> gradients_;
  Products out_;
};

}  // namespace

Products products_of(const Trace& trace) { return Walk(trace).run(); }

}  // namespace stepscope::costs
