// Gradients of parameters that no optimizer has, as those of a network that is frozen for the optimizer and not for
// autograd: the backward pass makes them, and nobody reads them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "costs/sums.h"
#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/heaviest.h"
#include "diagnose/inputs.h"
#include "diagnose/model_calls.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/lookup.h"
#include "model/module_paths.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kAccumulate = "AccumulateGrad";

// Operators that make the gradients of what they were given and of their weights in one: part of it is left.
constexpr double kLeastOfBoth = 0.4, kMostOfBoth = 0.8;

// An operator of the backward pass.
struct Back {
  bool is_needless = false;  // nothing that it leads to is learned
  bool is_apart = false;     // of a model of which nothing is learned: it leads to what this was given, if anything
  std::string_view module;   // whose weights are not learned; empty: they are, or it has none
  std::string_view model;    // around it, where is_apart
  SliceId forward = SliceId::none;
};

class Unread {
 public:
  Unread(const Case& about, const Trace& trace) : about_(about), trace_(trace), paths_(trace) {
    for (const ModuleSize& size : trace.module_sizes) {
      if (size.learned > 0) learned_.insert(size.path);
      if (size.unread > 0 && size.learned == 0) unread_.insert(size.path);
    }
    if (unread_.empty()) return;
    find_first_learned();
    find_backward();
  }

  // nullptr: nothing there is made for nobody.
  const Back* at(SliceId outermost) const {
    const auto found = backward_.find(outermost);
    return found == backward_.end() ? nullptr : &found->second;
  }

 private:
  const Case& about_;
  const Trace& trace_;
  ModulePaths paths_;
  std::set<std::string_view> unread_, learned_;
  std::set<StringId> learned_models_, unread_models_;  // names of outermost modules
  std::map<StepId, std::int64_t> first_learned_ns_;    // in each step: the first call of what is learned
  std::unordered_map<SliceId, Back> backward_;

  std::string_view module_of(SliceId slice) const {
    const std::uint32_t node = paths_.node_of(slice);
    return node == ModulePaths::none ? std::string_view() : paths_.nodes()[node].path;
  }

  std::string_view path_of_call(std::uint32_t row) const { return paths_.nodes()[paths_.node_of_call(row)].path; }

  // The name of the outermost module around it, or of that call itself.
  StringId model_of(SliceId slice) const {
    StringId name = StringId::none;
    for (std::uint32_t row = paths_.call_around(slice); row != ModulePaths::none;
         row = paths_.call_around(trace_.modules[row].slice)) {
      name = trace_.modules[row].name;
    }
    return name;
  }

  // What runs before it in a step gives gradients to nothing that is learned.
  void find_first_learned() {
    std::set<std::string_view> called, attentions, users;
    for (std::uint32_t row = 0; row < trace_.modules.size(); row++) {
      const ModulePaths::Node& node = paths_.nodes()[paths_.node_of_call(row)];
      called.insert(node.path);
      if (node.type != StringId::none && trace_.strings[node.type] == "MultiheadAttention")
        attentions.insert(node.path);
    }
    bool known = true;
    for (const std::string_view path : learned_) {
      // One that has no range of its own may be used anywhere, but for the last layer of torch's attention.
      const std::string_view user = called.contains(path) ? path : path.substr(0, path.rfind('.'));
      known = known && (user == path ? called.contains(path) : attentions.contains(user));
      users.insert(user);
    }
    for (std::uint32_t row = 0; row < trace_.modules.size(); row++) {
      const std::string_view path = path_of_call(row);
      const StringId around = model_of(trace_.modules[row].slice);
      const StringId model = around == StringId::none ? trace_.modules[row].name : around;
      if (unread_.contains(path)) unread_models_.insert(model);
      if (!users.contains(path)) continue;
      learned_models_.insert(model);
      const std::int64_t start_ns = trace_.slices.start_ns[trace_.modules[row].slice];
      const auto [at, is_new] = first_learned_ns_.try_emplace(trace_.step_at(start_ns), start_ns);
      at->second = std::min(at->second, start_ns);
    }
    if (!known) first_learned_ns_.clear();
    // What was made in the step before may be given to anything in this one.
    for (const stepscope::Backward& pair : trace_.backward) {
      const StepId made = trace_.step_at(trace_.slices.start_ns[pair.forward]);
      const StepId back = trace_.step_at(trace_.slices.start_ns[pair.backward]);
      if (made != back) first_learned_ns_.erase(back);
    }
  }

  void find_backward() {
    std::map<TrackId, std::vector<SliceId>> threads;
    for (std::size_t row = 0; row < trace_.ops.size(); row++) {
      const SliceId slice = trace_.ops.slice[row];
      if (about_.outermost(trace_, slice) != slice || !is_backward(trace_.name(slice))) continue;
      threads[trace_.slices.track[slice]].push_back(slice);
    }
    for (auto& [track, all] : threads) {
      std::sort(all.begin(), all.end(),
                [&](SliceId a, SliceId b) { return trace_.slices.start_ns[a] < trace_.slices.start_ns[b]; });
      const Back* before = nullptr;
      for (const SliceId slice : all) {
        // It comes right behind what made the gradient: the engine takes it first of all that is ready.
        if (trace_.name(slice).ends_with(kAccumulate)) {
          if (before != nullptr) backward_[slice] = {.is_needless = true, .module = before->module};
          continue;
        }
        before = add(slice);
      }
    }
  }

  const Back* add(SliceId slice) {
    const SliceId forward = passes(about_).reason(trace_, slice);
    if (forward == slice) return nullptr;
    const std::int64_t start_ns = trace_.slices.start_ns[forward];
    const auto first = first_learned_ns_.find(trace_.step_at(start_ns));
    const StringId model = model_of(forward);
    Back back{.forward = forward};
    if (const auto module = unread_.find(module_of(forward)); module != unread_.end()) back.module = *module;
    if (unread_models_.contains(model) && first != first_learned_ns_.end()) {
      back.is_needless = start_ns < first->second;
      back.is_apart = !learned_models_.contains(model);
      if (back.is_apart) back.model = trace_.strings[model];
    }
    if (!back.is_needless && !back.is_apart && back.module.empty()) return nullptr;
    return &(backward_[slice] = back);
  }
};

// Which input of an operator of the forward pass is multiplied; behind it comes the weight.
std::size_t input_of(std::string_view name) { return name == "aten::addmm" ? 1 : 0; }

// Is it the gradient of a matrix that the operator of the forward pass was given, as its weight?
bool gives_weight(const Sizes& product, std::string_view name, const OperatorInputs& forward) {
  const Sizes turned(product.rbegin(), product.rend());
  for (std::size_t k = input_of(name) + 1; k < forward.shapes.size() && !product.empty(); k++) {
    if (forward.shapes[k].sizes == product || forward.shapes[k].sizes == turned) return true;
  }
  return false;
}

// The whole of what is frozen around a module of it.
std::string_view all_frozen(const Trace& trace, std::string_view module) {
  const auto is_learned_in = [&](std::string_view path) {
    return std::any_of(trace.module_sizes.begin(), trace.module_sizes.end(), [&](const ModuleSize& size) {
      return size.learned > 0 && size.path.starts_with(path) &&
             (size.path.size() == path.size() || size.path[path.size()] == '.');
    });
  };
  for (std::size_t dot = module.rfind('.'); dot != module.npos; dot = module.rfind('.')) {
    if (is_learned_in(module.substr(0, dot))) break;
    module = module.substr(0, dot);
  }
  return module;
}

struct Left {
  double least = 1, most = 1;
};

// Of the work of an operator inside of one of the backward pass, where only the gradients of weights are needless.
Left left_of(const Case& about, const Trace& trace, SliceId inner, SliceId forward) {
  const std::string_view name = trace.name(inner);
  if (name == "aten::sum" || name == "aten::embedding_dense_backward") return {0, 0};  // a bias, a table
  if (is_product(name)) {
    const OperatorInputs& of = inputs(about).of(trace, forward);
    const Sizes product = inputs(about).of(trace, inner).product();
    if (!gives_weight(product, trace.name(forward), of)) return {};
    // Of as many samples as the layer has outputs the two gradients look alike.
    const std::size_t input = input_of(trace.name(forward));
    const bool alike = input < of.shapes.size() && elements(of.shapes[input].sizes) == elements(product);
    return {0, alike ? 1.0 : 0.0};
  }
  if (name == "aten::convolution_backward" || name.find("_norm_backward") != name.npos) {
    return {kLeastOfBoth, kMostOfBoth};
  }
  return {};
}

}  // namespace

Cause unread_gradients_cause() {
  return {
      "unread_gradients", "Gradients that no optimizer reads", [](const Case& about, std::vector<Diagnosis>& out) {
        std::map<const Trace*, Unread> known;
        for (const Trace& trace : timelines(about.run)) {
          const bool any = std::any_of(trace.module_sizes.begin(), trace.module_sizes.end(),
                                       [](const ModuleSize& size) { return size.unread > 0; });
          if (any) known.try_emplace(&trace, about, trace);
        }
        if (known.empty()) return;
        Gathered needless(about);
        Heaviest modules, models;
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          const auto of = known.find(work.trace);
          if (of == known.end() || work.operation == SliceId::none) return;
          const Back* back = of->second.at(work.operation);
          if (back == nullptr) return;
          Left left{0, 0.05};
          const SliceId inner = op_around(*work.trace, work.inside);
          if (!back->is_needless) {
            left = inner == SliceId::none || back->module.empty() ? Left{}
                                                                  : left_of(about, *work.trace, inner, back->forward);
            if (back->is_apart) left = {0, left.most};
          }
          if (left.least == 1) return;
          needless.add(node, work, work.trace->name(work.operation), left.least, left.most);
          if (!back->module.empty()) modules.add(back->module, work, about.on_path(node));
          models.add(back->model, work, about.on_path(node));
        });
        if (!needless.worth_saying()) return;
        const Trace& trace = *needless.names().first().example.trace;
        Diagnosis found = needless.diagnosis(
            {.cause = "autograd",
             .sentence = "The backward pass makes gradients of parameters that no optimizer has",
             .next = "Freeze them before the first step, module.requires_grad_(False), and run what needs no gradient "
                     "at all under torch.no_grad()",
             .doubt = "that nothing else reads these gradients is inferred: no optimizer of the job has the "
                      "parameters",
             .called = optimizer_class(trace)});
        if (!modules.empty()) found.finding.where.module = std::string(all_frozen(trace, modules.first().name));
        // Of a model that is none of what is learned the program says where it calls it.
        if (const std::string& model = models.first().name; !model.empty()) {
          put_model(about, trace, model, found.finding.where);
        }
        std::int64_t parameters = 0, all = 0;
        for (const ModuleSize& size : trace.module_sizes) {
          parameters = costs::add_up(parameters, size.unread);
          all = costs::add_up(all, size.parameters);
        }
        found.finding.evidence.push_back(
            {.text = "Parameters that no optimizer has", .value = parameters, .unit = Unit::count});
        found.finding.evidence.push_back({.text = "Of so many", .value = all, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
