// Gradients that nobody reads: of parameters that no optimizer has, as those of a network that is frozen for the
// optimizer and not for autograd, or thrown away before their optimizer steps, as those that a discriminator's loss has
// for the generator.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
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
#include "model/python_frames.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kAccumulate = "AccumulateGrad";
constexpr std::size_t kMostPasses = 16;  // of a step, that are looked at

// Operators that make the gradients of what they were given and of their weights in one: part of it is left.
constexpr double kLeastOfBoth = 0.4, kMostOfBoth = 0.8;

// An operator of the backward pass.
struct Back {
  bool is_needless = false;  // nothing that it leads to is learned
  bool is_apart = false;     // of a model of which nothing is learned: it leads to what this was given, if anything
  std::string_view module;   // whose weights are not learned; empty: they are, or it has none
  std::string_view model;    // around it, where is_apart
  std::size_t pass = 0;      // of the step, where some of its gradients are thrown away
  SliceId forward = SliceId::none;
};

// What the gradients of a backward pass are good for.
struct Use {
  std::set<std::string_view> unread, learned;        // paths of modules
  std::set<StringId> learned_models, unread_models;  // names of outermost modules
  std::map<StepId, std::int64_t> first_learned_ns;   // in each step: the first call of what is learned
};

struct BackwardPass {
  Interval when;
  std::multiset<std::string_view> models;  // outermost modules that were called since the pass before it
  std::size_t number = 0;                  // which of those of the step with stacks it is like, from 1; 0: of none
};

std::vector<BackwardPass> backward_passes(const Trace& trace, const ModulePaths& paths) {
  std::vector<BackwardPass> all;
  for (std::size_t i = 0; i < trace.slices.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    if (trace.kind(slice) != SliceKind::user_annotation || trace.name(slice) != "backward") continue;
    all.push_back({.when = {trace.slices.start_ns[slice], trace.slices.end_ns(slice)}, .models = {}});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.when.start < b.when.start; });
  std::vector<BackwardPass> out;
  for (BackwardPass& pass : all) {  // one within another is a part of it
    if (out.empty() || pass.when.start >= out.back().when.end) out.push_back(std::move(pass));
  }
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
    if (paths.call_around(trace.modules[row].slice) != ModulePaths::none) continue;
    const std::int64_t start_ns = trace.slices.start_ns[trace.modules[row].slice];
    const auto into = std::upper_bound(out.begin(), out.end(), start_ns,
                                       [](std::int64_t ns, const BackwardPass& pass) { return ns < pass.when.start; });
    const bool is_again = into != out.begin() && start_ns < into[-1].when.end;  // of a pass that recomputes
    if (into != out.end() && !is_again) into->models.insert(trace.strings[trace.modules[row].name]);
  }
  return out;
}

class Unread {
 public:
  Unread(const Case& about, const Trace& trace) : about_(about), trace_(trace), paths_(trace) {
    uses_.emplace_back();
    for (const ModuleSize& size : trace.module_sizes) {
      if (size.learned > 0) uses_[0].learned.insert(size.path);
      if (size.unread > 0 && size.learned == 0) uses_[0].unread.insert(size.path);
    }
    find_passes();
    for (std::size_t pass = 0; pass < uses_.size(); pass++) {
      if (!uses_[pass].unread.empty()) find_first_learned(pass);
    }
    find_backward();
  }

  bool empty() const { return backward_.empty(); }
  const Use& use(std::size_t pass) const { return uses_[pass]; }
  // nullptr: nothing there is made for nobody.
  const Back* at(SliceId outermost) const {
    const auto found = backward_.find(outermost);
    return found == backward_.end() ? nullptr : &found->second;
  }

 private:
  const Case& about_;
  const Trace& trace_;
  ModulePaths paths_;
  std::vector<Use> uses_;             // of each pass of a step, where they differ, behind that of any other
  std::vector<BackwardPass> passes_;  // by start; none where no gradients are thrown away
  std::unordered_map<SliceId, Back> backward_;

  // Where gradients are thrown away: which backward passes are alike to those that were seen to do so.
  void find_passes() {
    const std::vector<Source::Turn> thrown = about_.places.source(trace_).thrown_away();
    const Trace* seen = trace_with_frames(about_.run, trace_);
    if (thrown.empty() || seen == nullptr) return;
    const std::vector<BackwardPass> known = backward_passes(*seen, ModulePaths(*seen));
    const bool fits =
        std::any_of(thrown.begin(), thrown.end(), [&](const Source::Turn& one) { return one.count == known.size(); });
    if (!fits || known.size() > kMostPasses) return;
    uses_.resize(1 + known.size(), uses_[0]);
    for (const Source::Turn& one : thrown) {
      if (one.count != known.size()) continue;
      Use& use = uses_[one.number];
      const auto learned = use.learned.find(one.module);
      if (learned == use.learned.end()) continue;  // it is read nowhere, or has no name here
      use.unread.insert(*learned);
      use.learned.erase(learned);
    }
    passes_ = backward_passes(trace_, paths_);
    for (std::size_t begin = 0, end = 0; begin < passes_.size(); begin = end) {
      const StepId step = trace_.step_at(passes_[begin].when.start);
      while (end < passes_.size() && trace_.step_at(passes_[end].when.start) == step) end++;
      number_passes(known, std::span(passes_).subspan(begin, end - begin));
    }
  }

  // Of a step: those of a step that went the same way are known by their turns, any other by what models it called.
  void number_passes(const std::vector<BackwardPass>& known, std::span<BackwardPass> passes) const {
    const auto same = [](const BackwardPass& a, const BackwardPass& b) { return a.models == b.models; };
    if (std::equal(passes.begin(), passes.end(), known.begin(), known.end(), same)) {
      for (std::size_t k = 0; k < passes.size(); k++) passes[k].number = k + 1;
      return;
    }
    for (BackwardPass& pass : passes) {
      for (std::size_t k = 0; k < known.size(); k++) {
        if (!same(known[k], pass)) continue;
        // Two that run the same models and differ in what is read cannot be told from one another.
        const bool is_only = pass.number == 0 || uses_[pass.number].unread == uses_[k + 1].unread;
        pass.number = is_only ? k + 1 : 0;
        if (!is_only) break;
      }
    }
  }

  std::size_t pass_of(SliceId backward) const {
    const std::int64_t start_ns = trace_.slices.start_ns[backward];
    const auto behind =
        std::upper_bound(passes_.begin(), passes_.end(), start_ns,
                         [](std::int64_t ns, const BackwardPass& pass) { return ns < pass.when.start; });
    return behind == passes_.begin() || start_ns >= behind[-1].when.end ? 0 : behind[-1].number;
  }

  // The end of the last backward pass before it.
  std::int64_t forward_begins_ns(SliceId forward) const {
    const std::int64_t start_ns = trace_.slices.start_ns[forward];
    const auto behind = std::upper_bound(passes_.begin(), passes_.end(), start_ns,
                                         [](std::int64_t ns, const BackwardPass& pass) { return ns < pass.when.end; });
    return behind == passes_.begin() ? std::numeric_limits<std::int64_t>::min() : behind[-1].when.end;
  }

  std::string_view module_of(SliceId slice) const {
    const std::uint32_t node = paths_.node_of(slice);
    return node == ModulePaths::none ? std::string_view() : paths_.nodes()[node].path;
  }

  std::string_view path_of_call(std::uint32_t row) const { return paths_.nodes()[paths_.node_of_call(row)].path; }

  // The name of the outermost module around it; none: it is in no module.
  StringId model_of(SliceId slice) const {
    StringId name = StringId::none;
    for (std::uint32_t row = paths_.call_around(slice); row != ModulePaths::none;
         row = paths_.call_around(trace_.modules[row].slice)) {
      name = trace_.modules[row].name;
    }
    return name;
  }

  // What runs before it in a step gives gradients to nothing that is learned.
  void find_first_learned(std::size_t pass) {
    Use& use = uses_[pass];
    // What goes back in this pass was made since then; what was made in the step before may be given to anything.
    std::map<StepId, std::int64_t> begins_ns;
    std::set<StepId> across;
    for (const stepscope::Backward& pair : trace_.backward) {
      const StepId made = trace_.step_at(trace_.slices.start_ns[pair.forward]);
      const StepId back = trace_.step_at(trace_.slices.start_ns[pair.backward]);
      if (made != back) across.insert(back);
      if (pass == 0 || pass_of(pair.backward) != pass) continue;
      const std::int64_t since_ns = forward_begins_ns(pair.forward);
      const auto [at, is_new] = begins_ns.try_emplace(back, since_ns);
      at->second = std::min(at->second, since_ns);
    }
    std::set<std::string_view> called, attentions, users;
    for (std::uint32_t row = 0; row < trace_.modules.size(); row++) {
      const ModulePaths::Node& node = paths_.nodes()[paths_.node_of_call(row)];
      called.insert(node.path);
      if (node.type != StringId::none && trace_.strings[node.type] == "MultiheadAttention")
        attentions.insert(node.path);
    }
    bool known = true;
    for (const std::string_view path : use.learned) {
      // One that has no range of its own may be used anywhere, but for the last layer of torch's attention.
      const std::string_view user = called.contains(path) ? path : path.substr(0, path.rfind('.'));
      known = known && (user == path ? called.contains(path) : attentions.contains(user));
      users.insert(user);
    }
    for (std::uint32_t row = 0; row < trace_.modules.size(); row++) {
      const std::string_view path = path_of_call(row);
      const StringId around = model_of(trace_.modules[row].slice);
      const StringId model = around == StringId::none ? trace_.modules[row].name : around;
      if (use.unread.contains(path)) use.unread_models.insert(model);
      if (!users.contains(path)) continue;
      use.learned_models.insert(model);
      const std::int64_t start_ns = trace_.slices.start_ns[trace_.modules[row].slice];
      const StepId step = trace_.step_at(start_ns);
      if (const auto since = begins_ns.find(step); since != begins_ns.end() && start_ns < since->second) continue;
      const auto [at, is_new] = use.first_learned_ns.try_emplace(step, start_ns);
      at->second = std::min(at->second, start_ns);
    }
    if (!known) use.first_learned_ns.clear();
    for (const StepId step : across) use.first_learned_ns.erase(step);
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
          if (before != nullptr)
            backward_[slice] = {.is_needless = true, .module = before->module, .pass = before->pass};
          continue;
        }
        before = add(slice);
      }
    }
  }

  const Back* add(SliceId slice) {
    const SliceId forward = passes(about_).reason(trace_, slice);
    if (forward == slice) return nullptr;
    const std::size_t pass = pass_of(slice);
    const Use& use = uses_[pass];
    const std::int64_t start_ns = trace_.slices.start_ns[forward];
    const auto first = use.first_learned_ns.find(trace_.step_at(start_ns));
    const StringId model = model_of(forward);
    Back back{.pass = pass, .forward = forward};
    if (const auto module = use.unread.find(module_of(forward)); module != use.unread.end()) back.module = *module;
    if (use.unread_models.contains(model) && first != use.first_learned_ns.end()) {
      back.is_needless = start_ns < first->second;
      // What is thrown away passes the gradient on to what was called before it and learns.
      const bool leads_on = pass > 0 && !back.is_needless;
      back.is_apart = !use.learned_models.contains(model) && !leads_on;
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

// The whole of what nothing is learned of around a module of it.
std::string_view all_unread(const Use& use, std::string_view module) {
  const auto is_learned_in = [&](std::string_view path) {
    return std::any_of(use.learned.begin(), use.learned.end(), [&](std::string_view learned) {
      return learned.starts_with(path) && (learned.size() == path.size() || learned[path.size()] == '.');
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

Diagnosis without_optimizer(const Gathered& needless, std::string_view optimizer) {
  return needless.diagnosis(
      {.cause = "autograd",
       .sentence = "The backward pass makes gradients of parameters that no optimizer has",
       .next = "Freeze them before the first step, module.requires_grad_(False), and run what needs no gradient at all "
               "under torch.no_grad()",
       .doubt = "that nothing else reads these gradients is inferred: no optimizer of the job has the parameters",
       .called = optimizer});
}

Diagnosis thrown_away(const Gathered& needless, bool whole) {
  return needless.diagnosis(
      {.cause = "autograd",
       .sentence = "A backward pass makes gradients that are thrown away before any optimizer reads them",
       .next = whole
                   ? "Cut the graph before that model where this loss needs nothing of it: discriminator(fake.detach())"
                   : "Switch the gradients of its parameters off for this pass, model.requires_grad_(False), and on "
                     "again behind it",
       .doubt = "that nothing else reads these gradients is inferred: they are gone before their optimizer steps"});
}

}  // namespace

Cause unread_gradients_cause() {
  return {"unread_gradients", "Gradients that no optimizer reads", [](const Case& about, std::vector<Diagnosis>& out) {
            std::map<const Trace*, Unread> known;
            for (const Trace& trace : timelines(about.run)) {
              const bool any = std::any_of(trace.module_sizes.begin(), trace.module_sizes.end(),
                                           [](const ModuleSize& size) { return size.unread > 0; });
              if (any || !about.places.source(trace).thrown_away().empty()) known.try_emplace(&trace, about, trace);
            }
            if (known.empty()) return;
            Gathered needless(about);
            Heaviest models;
            std::map<std::pair<const Trace*, std::size_t>, Heaviest> modules;  // by pass
            // Time by pass, 0: of what no optimizer has; and of that what goes whole.
            std::map<std::pair<const Trace*, std::size_t>, std::int64_t> by_pass, whole;
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              const auto of = known.find(work.trace);
              if (of == known.end() || work.operation == SliceId::none) return;
              const Back* back = of->second.at(work.operation);
              if (back == nullptr) return;
              Left left{0, 0.05};
              const SliceId inner = op_around(*work.trace, work.inside);
              if (!back->is_needless) {
                left = inner == SliceId::none || back->module.empty()
                           ? Left{}
                           : left_of(about, *work.trace, inner, back->forward);
                if (back->is_apart) left = {0, left.most};
              }
              if (left.least == 1) return;
              needless.add(node, work, work.trace->name(work.operation), left.least, left.most);
              if (!back->module.empty()) modules[{work.trace, back->pass}].add(back->module, work, about.on_path(node));
              models.add(back->model, work, about.on_path(node));
              by_pass[{work.trace, back->pass}] += about.on_path(node);
              if (back->is_needless) whole[{work.trace, back->pass}] += about.on_path(node);
            });
            if (!needless.worth_saying()) return;
            const auto heaviest = std::max_element(by_pass.begin(), by_pass.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
            const Trace& trace = *heaviest->first.first;
            const std::size_t pass = heaviest->first.second;
            const bool mostly_whole = 2 * whole[heaviest->first] > heaviest->second;
            Diagnosis found =
                pass > 0 ? thrown_away(needless, mostly_whole) : without_optimizer(needless, optimizer_class(trace));
            if (const Heaviest& of_pass = modules[heaviest->first]; !of_pass.empty()) {
              found.finding.where.module = std::string(all_unread(known.at(&trace).use(pass), of_pass.first().name));
            }
            if (pass > 0) {
              for (const Source::Turn& one : about.places.source(trace).thrown_away()) {
                if (one.number != pass) continue;
                const std::optional<std::string> module = found.finding.where.module;
                put_call(*one.call, found.finding.where);
                found.finding.where.module = module;
                break;
              }
              out.push_back(std::move(found));
              return;
            }
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
