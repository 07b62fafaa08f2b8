#include "costs/products.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "base/name_verdicts.h"
#include "costs/counts.h"
#include "costs/formulas.h"

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

// How the FLOP of what has a name are found; at most one of the three.
struct Way {
  const Formula* formula = nullptr;
  const FlopRule* rule = nullptr;
  const SaidWork* said = nullptr;

  bool known() const { return formula != nullptr || rule != nullptr || said != nullptr; }
  bool unless_below() const {
    return (formula != nullptr && formula->at_most) || (rule != nullptr && rule->unless_below);
  }
  bool tells_backward() const {
    return (rule != nullptr && rule->backward) || (said != nullptr && said->backward_flop);
  }
  std::size_t operand() const { return formula != nullptr ? formula->operand : rule != nullptr ? rule->operand : 0; }
};

class Walk {
 public:
  Walk(const Trace& trace, const CostTables& tables)
      : trace_(trace), tables_(tables), inputs_(trace), state_(trace.slices.size()) {
    rows_.assign(trace.slices.size(), kNone);
    for (std::uint32_t row = 0; row < trace.ops.size(); row++) {
      rows_[static_cast<std::size_t>(trace.ops.slice[row])] = row;
    }
    for (const Backward& link : trace.backward) forward_.try_emplace(link.backward, link.forward);
    ways_.resize(trace.strings.size());
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
    for (std::uint32_t at = 1; at < place_.size(); at++) count(at, Sweep::forward);
    next_ = 0;
    for (std::uint32_t at = 1; at < place_.size(); at++) count(at, Sweep::backward);
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

  Way way_of(std::string_view name, bool op) {
    if (!op) {  // a range of the program's own
      const auto said = said_work(name);
      return {.said = said ? &said_.emplace_back(*said) : nullptr};
    }
    if (const FlopRule* own = tables_.own.match(name)) return {.rule = own};
    if (const Formula* formula = formula_of(name)) return {.formula = formula};
    return {.rule = tables_.shipped.match(name)};
  }

  const Way& way(SliceId id) {
    static constexpr Way kNoWay;
    const StringId name = trace_.slices.name[id];
    const SliceKind kind = trace_.kind(id);
    if ((kind != SliceKind::cpu_op && kind != SliceKind::user_annotation) || name == StringId::none) return kNoWay;
    std::optional<Way>& known = ways_[static_cast<std::size_t>(name)][kind == SliceKind::cpu_op ? 0 : 1];
    if (!known) known = way_of(trace_.strings[name], kind == SliceKind::cpu_op);
    return *known;
  }

  // Children come before their callers here.
  void look_below(std::uint32_t place) {
    const SliceId id = place_[place], parent = trace_.slices.parent[id];
    const Way& found = way(id);
    State& here = state(id);
    if (found.known() && !(found.unless_below() && here.above_formula)) candidates_.push_back(place);
    if (parent == SliceId::none) return;
    State& above = state(parent);
    const SliceKind kind = trace_.kind(id);
    const bool runs = kind == SliceKind::cpu_op || kind == SliceKind::user_annotation || kind == SliceKind::runtime;
    above.worked = above.worked || here.worked || (runs && !says(id, kDetach));
    above.above_formula = above.above_formula || here.above_formula || found.known();
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

  std::optional<std::int64_t> flop(const Way& found, SliceId id) {
    if (found.said != nullptr) return found.said->flop;
    if (row(id) == kNone) return std::nullopt;
    const Inputs inputs = inputs_.of(row(id));
    if (found.rule != nullptr) return found.rule->flop.value(inputs);
    auto known = found.formula->flop(inputs);
    // Sizes count pairs of numbers, and the product runs over both.
    const bool pairs = inputs_.type(row(id), found.formula->operand).ends_with("_x2");
    if (known && pairs) known = times(2, known);
    if (known || found.formula->op != "aten::convolution" || !inputs.values.empty()) return known;
    const auto gradient = gradients_.find(sequence(id));
    return gradient == gradients_.end() ? std::nullopt : convolution_by_gradient(inputs, *gradient->second);
  }

  Part part(SliceId id) {
    const State& here = state(id);
    if (here.node == kNone) return Part::forward;
    // With create_graph=True the whole of a node is tracked, else its own gradients are not.
    return here.tracked && nodes_[here.node].own ? Part::recompute : Part::backward;
  }

  std::optional<std::int64_t> bytes(const Way& found, SliceId id) {
    if (found.said != nullptr) return found.said->bytes;
    return found.rule != nullptr && found.rule->bytes ? found.rule->bytes->value(inputs_.of(row(id))) : std::nullopt;
  }

  // False where it has no mask that could be causal; unknown where the value was not recorded.
  std::optional<bool> is_causal(const Way& found, SliceId id) {
    if (found.formula != nullptr) return costs::is_causal(*found.formula, inputs_.of(row(id)));
    if (found.rule == nullptr || !found.rule->causal) return false;
    const auto said = parse_truths(inputs_.of(row(id)).value(*found.rule->causal));
    return said && said->size() == 1 ? std::optional<bool>(said->front()) : std::nullopt;
  }

  std::int64_t masked(const Way& found, SliceId id, std::int64_t flop) {
    const State& here = state(id);
    const bool in_causal_node = here.node != kNone && causal_sequences_.contains(nodes_[here.node].sequence);
    if (here.causal || (in_causal_node && part(id) == Part::backward)) return flop / 2;
    const auto causal = is_causal(found, id);
    if (!causal) out_.masks_known = false;
    return causal.value_or(false) ? flop / 2 : 0;
  }

  std::string_view op_name(const Way& found, SliceId id) {
    return found.said != nullptr ? found.said->name : trace_.name(id);
  }

  Known add(const Way& found, SliceId id, Product product) {
    out_.product_at[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(out_.all.size());
    product.slice = id;
    product.row = found.said == nullptr ? product.row : Product::no_row;
    product.operand = found.operand();
    product.custom = found.formula == nullptr;
    if (found.said != nullptr) product.said_type = found.said->type;
    out_.all.push_back(product);
    return Known::counted;
  }

  Known no_shapes(SliceId id) {
    out_.without_shapes.push_back({id, part(id)});
    return Known::no_shapes;
  }

  Known count_op(const Way& found, SliceId id) {
    const auto known = flop(found, id);
    if (!known) return no_shapes(id);
    const std::uint32_t node = state(id).node;
    if (found.tells_backward()) told_.try_emplace(id, Told{&found, *known, false});
    return add(found, id,
               {.op = op_name(found, id),
                .row = row(id),
                .bytes = bytes(found, id),
                .flop = *known,
                .masked = masked(found, id, *known),
                .part = part(id),
                .node = node == kNone ? SliceId::none : nodes_[node].slice});
  }

  // ---- backward passes that the forward operator tells ----

  struct Told {
    const Way* way;
    std::int64_t forward;
    bool given;  // to a node: there may be several
  };

  // The counted forward operator of this node that tells what its backward pass takes.
  std::pair<SliceId, Told*> told_by(SliceId node) {
    if (told_.empty() || !says(node, kNode)) return {SliceId::none, nullptr};
    const auto forward = forward_.find(node);
    if (forward == forward_.end()) return {SliceId::none, nullptr};
    const std::uint32_t product = out_.product_at[static_cast<std::size_t>(forward->second)];
    if (product == Products::none) return {SliceId::none, nullptr};
    const auto told = told_.find(out_.all[product].slice);
    return told == told_.end() ? std::pair(SliceId::none, static_cast<Told*>(nullptr))
                               : std::pair(told->first, &told->second);
  }

  Known count_node(SliceId node, SliceId forward, Told& told) {
    const Way& found = *told.way;
    std::optional<std::int64_t> flop = 0;
    if (!told.given) {
      flop = found.said != nullptr ? found.said->backward_flop
                                   : found.rule->backward->value(inputs_.of(row(forward)), told.forward);
    }
    if (!flop) return no_shapes(node);
    told.given = true;
    const auto causal = is_causal(found, forward);
    return add(found, node,
               {.op = op_name(found, forward),
                .row = row(forward),
                .flop = *flop,
                .masked = causal.value_or(false) ? *flop / 2 : 0,
                .part = Part::backward,
                .node = node});
  }

  // ---- one slice after the other, callers first ----

  enum class Sweep : std::uint8_t { forward, backward };

  void inherit(SliceId id) {
    Known& known = out_.known[static_cast<std::size_t>(id)];
    if (const SliceId parent = trace_.slices.parent[id]; parent != SliceId::none) {
      known = out_.known[static_cast<std::size_t>(parent)];
      out_.product_at[static_cast<std::size_t>(id)] = out_.product_at[static_cast<std::size_t>(parent)];
    }
    if (known == Known::nothing && is_op(id)) known = Known::no_formula;
    if (state(id).compiling || says(id, kCompiler)) known = Known::not_run;
  }

  void count(std::uint32_t place, Sweep sweep) {
    const SliceId id = place_[place];
    const bool candidate = next_ < candidates_.size() && candidates_[next_] == place;
    if (candidate) next_++;
    if ((state(id).node == kNone) != (sweep == Sweep::forward)) return;
    inherit(id);
    Known& known = out_.known[static_cast<std::size_t>(id)];
    if (known != Known::no_formula && known != Known::nothing) return;
    const auto [forward, told] =
        sweep == Sweep::backward ? told_by(id) : std::pair(SliceId::none, static_cast<Told*>(nullptr));
    if (told != nullptr && !(told->way->unless_below() && state(id).above_formula)) {
      known = count_node(id, forward, *told);
    } else if (candidate) {
      known = was_left(place) ? Known::not_run : count_op(way(id), id);
    }
  }

  const Trace& trace_;
  const CostTables& tables_;
  TraceInputs inputs_;
  NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)> words_{trace_.strings, kUnasked, words_of};
  std::vector<std::array<std::optional<Way>, 2>> ways_;  // per name: as an operator, as a range
  std::deque<SaidWork> said_;
  std::vector<std::uint32_t> rows_;               // per slice: its row of ops
  std::vector<State> state_;                      // per slice
  std::unordered_map<SliceId, SliceId> forward_;  // per node of autograd: its forward operator
  std::unordered_map<SliceId, Told> told_;        // forward operators that tell what their backward pass takes
  std::vector<SliceId> place_;                    // slices of host threads, callers before what they call
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> candidates_;  // places of operators with a formula
  std::size_t next_ = 0;
  std::set<std::int64_t> causal_sequences_;  // of what attention under a causal mask was made of
  std::map<std::int64_t, const Sizes*> gradients_;
  Products out_;
};

}  // namespace

Products products_of(const Trace& trace, const CostTables& tables) { return Walk(trace, tables).run(); }

}  // namespace stepscope::costs
