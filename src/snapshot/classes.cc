#include "snapshot/classes.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/key_index.h"
#include "snapshot/judgment.h"
#include "snapshot/passes.h"
#include "snapshot/stack_roles.h"
#include "snapshot/stack_rules.h"

namespace stepscope::snapshot {
namespace {

constexpr std::int64_t kCublasWorkspace = 8'519'680;  // torch's default: 2 x 4 MiB and 8 x 16 KiB

class Classifier {
 public:
  Classifier(const CudaSnapshot& snapshot, AllocatorHistory& history, const std::vector<StackRole>& roles)
      : snapshot_(snapshot), history_(history), rows_(history.allocations), roles_(roles) {
    history_.classes.push_back({std::string(to_string(MemoryCategory::unknown)), MemoryCategory::unknown, ""});
    classes_[0];
  }

  void device(const SnapshotDevice& device) {
    const Passes passes(snapshot_, device, roles_);
    device_ = &device;
    passes_ = &passes;
    events_ = device.events.count;
    for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
      rows_.of_class[i] = class_of(judge(i));
    }
  }

 private:
  // ---- the moments of an allocation, as numbers of events ----

  void place(std::uint32_t row) {
    row_ = row;
    old_ = rows_.begin[row] == 0;
    made_ = old_ ? 0 : rows_.begin[row] - 1;
    freed_ = rows_.freed[row] == kNever ? events_ : rows_.freed[row] - 1;
    cut_ = old_ ? events_ : passes_->next_oom(made_);  // what is freed behind it, the error frees
    role_ = rows_.stack[row] == StackId::none ? StackRole() : roles_[static_cast<std::size_t>(rows_.stack[row])];
  }
  bool is_freed() const { return freed_ < events_ && freed_ < cut_; }
  bool alive_at(std::uint32_t event) const { return event < cut_ && freed_ > event; }
  // The recording ended by itself, with no pass open: what is alive then outlived its pass.
  bool outlived_all() const { return freed_ >= events_ && cut_ >= events_; }
  Pass freed_in() const { return is_freed() ? passes_->of(freed_) : Pass::unknown; }

  // ---- judging ----

  Judgment judge(std::uint32_t row) {
    place(row);
    Judgment found = by_profiler();
    if (found.category == MemoryCategory::unknown && workspace_by_size())
      found = {MemoryCategory::workspace, Basis::size, Life::never_freed};
    if (found.category == MemoryCategory::unknown) found = by_role(role_, Basis::stack);
    if (found.basis == Basis::nothing) found = by_pass_mark();
    if (found.basis == Basis::nothing) found = by_end();
    return found.basis == Basis::nothing ? label() : found;
  }

  Judgment by_profiler() const {
    const std::uint32_t context = rows_.context[row_];
    if (context == kNoEntry) return {};
    const StringId said = snapshot_.contexts[context].category;
    const MemoryCategory category = profilers_category(snapshot_.strings[said]);
    if (category == MemoryCategory::unknown) return {};
    return {category, Basis::profiler, Life::nothing, 0, static_cast<std::uint32_t>(said)};
  }

  bool workspace_by_size() const {
    return rows_.bytes[row_] == kCublasWorkspace && freed_ >= events_ && role_.role != Role::move &&
           role_.role != Role::init && role_.role != Role::load;
  }

  Judgment by_role(const StackRole& role, Basis basis) {
    const auto is = [&](MemoryCategory category, Life life = Life::nothing) {
      return Judgment{category, basis, life, role.rule, 0};
    };
    switch (role.role) {
      case Role::communication: return is(MemoryCategory::communication);
      case Role::workspace: return is(MemoryCategory::workspace);
      case Role::input: return is(MemoryCategory::input);
      case Role::optimizer_init: return is(MemoryCategory::optimizer_state);
      case Role::accumulate: return is(MemoryCategory::gradient);
      case Role::move:
      case Role::load:
      case Role::init: return parameter(role, basis);
      case Role::optimizer: return in_optimizer(role, basis);
      case Role::backward: return in_backward(role, basis);
      case Role::forward:
        return role.in_backward ? is(MemoryCategory::activation, Life::run_again) : in_forward(role, basis);
      case Role::zero_grad:
      case Role::none: break;
    }
    if (has_forward_stack()) return in_backward({Role::backward, 0, true, false}, Basis::stack);
    return {};
  }

  // The stack of the forward operator is only noted of what its backward allocates.
  bool has_forward_stack() const {
    const std::uint32_t context = rows_.context[row_];
    return context != kNoEntry && !snapshot_.frames_of(snapshot_.contexts[context].forward_stack).empty();
  }

  Judgment parameter(const StackRole& role, Basis basis) const {
    const bool weak = stack_rules()[role.rule].weak;
    if (weak && is_freed()) return {};
    if (is_freed() && freed_ < passes_->next(Pass::forward, made_))
      return {MemoryCategory::temporary, basis, Life::gone_early, role.rule};
    return {MemoryCategory::parameter, basis, weak ? Life::never_freed : Life::nothing, role.rule};
  }

  Judgment in_optimizer(const StackRole& role, Basis basis) const {
    std::uint32_t over = std::min(passes_->next(Pass::forward, made_), passes_->next(Pass::backward, made_));
    over = std::min({over, passes_->next(Pass::zero_grad, made_), passes_->end_of_mark(Pass::optimizer, made_)});
    return kept_or_gone(role, basis, over, Pass::optimizer, MemoryCategory::optimizer_state, Life::alive_after_step);
  }

  Judgment in_backward(const StackRole& role, Basis basis) const {
    if (freed_in() == Pass::zero_grad) return {MemoryCategory::gradient, basis, Life::freed_by_zero_grad, role.rule};
    std::uint32_t over = std::min(passes_->next(Pass::optimizer, made_), passes_->next(Pass::forward, made_));
    over = std::min({over, passes_->next(Pass::zero_grad, made_), passes_->end_of_mark(Pass::backward, made_)});
    return kept_or_gone(role, basis, over, Pass::backward, MemoryCategory::gradient, Life::alive_after_backward);
  }

  Judgment kept_or_gone(const StackRole& role, Basis basis, std::uint32_t over, Pass pass, MemoryCategory kept,
                        Life why) const {
    if (old_ || alive_at(over) || outlived_all()) return {kept, basis, why, role.rule};
    if (is_freed()) return {MemoryCategory::temporary, basis, Life::gone_in_pass, role.rule};
    return undecided(role, basis, pass);
  }

  Judgment in_forward(const StackRole& role, Basis basis) const {
    if (old_) return {};
    if (alive_at(passes_->next(Pass::backward, made_)))
      return {MemoryCategory::activation, basis, Life::alive_at_backward, role.rule};
    if (is_freed()) return {MemoryCategory::temporary, basis, Life::gone_in_pass, role.rule};
    if (outlived_all() || module_returned())
      return {MemoryCategory::activation, basis, Life::module_returned, role.rule};
    return undecided(role, basis, Pass::forward);
  }

  Judgment undecided(const StackRole& role, Basis basis, Pass pass) const {
    return {MemoryCategory::unknown, basis, Life::undecided, role.rule, static_cast<std::uint32_t>(pass)};
  }

  // Did the innermost module call that allocated it return before memory ran out? It did when a later event's stack
  // leaves it: has other frames from the outermost up to that call.
  bool module_returned() const {
    constexpr std::uint32_t kLooks = 4096;
    const auto own = snapshot_.frames_of(rows_.stack[row_]);
    std::size_t inside = 0;  // frames within the call
    while (inside < own.size() && !is_module_call(own[inside])) inside++;
    if (inside == own.size()) return false;
    const auto call = own.subspan(inside);
    for (std::uint32_t event = made_ + 1, looks = 0; event < std::min(cut_ + 1, events_) && looks < kLooks; event++) {
      const auto other = snapshot_.frames_of(snapshot_.events.stack[device_->events.first + event]);
      if (other.empty()) continue;
      looks++;
      if (other.size() < call.size() || !std::equal(call.rbegin(), call.rend(), other.rbegin())) return true;
    }
    return false;
  }

  bool is_module_call(FrameId frame) const {
    const SnapshotFrame& one = snapshot_.frames[frame];
    return snapshot_.strings[one.function] == "_call_impl" &&
           snapshot_.strings[one.file].ends_with("nn/modules/module.py");
  }

  // Its stack says nothing, but it lies in a range that the program marked as a pass.
  Judgment by_pass_mark() {
    if (old_ || passes_->mark_of_pass(made_) == kNoEntry || !passes_->by_mark(made_)) return {};
    Judgment found;
    switch (passes_->of(made_)) {
      case Pass::forward: found = in_forward({Role::forward, 0, false, false}, Basis::mark); break;
      case Pass::backward: found = in_backward({Role::backward, 0, true, false}, Basis::mark); break;
      case Pass::optimizer: found = in_optimizer({Role::optimizer, 0, false, true}, Basis::mark); break;
      default: return {};
    }
    if (found.life != Life::undecided)
      found.label = static_cast<std::uint32_t>(device_->marks[passes_->mark_of_pass(made_)].name);
    return found;
  }

  // Nothing is known of who made it, but where it ended tells.
  Judgment by_end() const {
    if (freed_in() == Pass::zero_grad) return {MemoryCategory::gradient, Basis::lifetime, Life::freed_by_zero_grad};
    if (freed_in() == Pass::backward && (old_ || passes_->of(made_) != Pass::backward))
      return {MemoryCategory::activation, Basis::lifetime, Life::freed_in_backward};
    return {};
  }

  // No category, but something that names it.
  Judgment label() const {
    const std::uint32_t context = rows_.context[row_];
    if (context != kNoEntry) {
      const EventContext& said = snapshot_.contexts[context];
      const std::string_view compiled = snapshot_.strings[said.compile_context];
      if (!compiled.empty() && compiled != "N/A") return labelled(Basis::compile_context, said.compile_context);
      if (!snapshot_.strings[said.user_metadata].empty()) return labelled(Basis::metadata, said.user_metadata);
    }
    const std::uint32_t pool = rows_.pool[row_];
    if (pool != kNoEntry && !(snapshot_.pools[pool] == MemoryPool{}))
      return {MemoryCategory::unknown, Basis::pool, Life::nothing, 0, pool};
    if (old_ || passes_->innermost_mark(made_) == kNoEntry) return {};
    return labelled(Basis::range, device_->marks[passes_->innermost_mark(made_)].name);
  }

  static Judgment labelled(Basis basis, StringId label) {
    return {MemoryCategory::unknown, basis, Life::nothing, 0, static_cast<std::uint32_t>(label)};
  }

  // ---- classes ----

  std::uint16_t class_of(const Judgment& judgment) {
    if (judgment.basis == Basis::nothing) return 0;
    const std::uint64_t key = std::uint64_t{judgment.label} << 32 | std::uint64_t{judgment.rule} << 16 |
                              static_cast<std::uint64_t>(judgment.basis) << 12 |
                              static_cast<std::uint64_t>(judgment.life) << 8 |
                              static_cast<std::uint64_t>(judgment.category) << 1 | 1;
    if (history_.classes.size() > std::numeric_limits<std::uint16_t>::max()) return 0;
    const std::uint32_t number = classes_[key];
    if (number == history_.classes.size()) history_.classes.push_back(described(snapshot_, judgment));
    return static_cast<std::uint16_t>(number);
  }

  const CudaSnapshot& snapshot_;
  AllocatorHistory& history_;
  Allocations& rows_;
  const std::vector<StackRole>& roles_;
  KeyIndex classes_;
  const SnapshotDevice* device_ = nullptr;
  const Passes* passes_ = nullptr;
  std::uint32_t events_ = 0;
  // the allocation at hand
  std::uint32_t row_ = 0, made_ = 0, freed_ = 0, cut_ = 0;
  bool old_ = false;
  StackRole role_;
};

}  // namespace

void give_classes(const CudaSnapshot& snapshot, AllocatorHistory& history) {
  const std::vector<StackRole> roles = stack_roles(snapshot);
  Classifier classifier(snapshot, history, roles);
  for (const SnapshotDevice& device : history.devices) classifier.device(device);
}

}  // namespace stepscope::snapshot
