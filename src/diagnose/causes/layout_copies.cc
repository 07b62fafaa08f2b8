// Copies that change nothing but the order in memory: .contiguous() behind a transpose, a reshape that cannot be a
// view, channels first and last in turn; and those that a library makes on a device around its own kernels. With them
// goes what gradients in the other order cost: copies back, and sums that go through one of two tensors in jumps.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/passes.h"
#include "model/kernel_groups.h"

namespace stepscope::diagnose::causes {
namespace {

// Of a sum of two tensors in different orders: the part that is left where they are in one, at best and at least.
constexpr double kSumInOrder[] = {0.2, 0.6};

// Of what torch normalizes plane by plane: the part that is left where all channels of a point lie side by side. A
// batch norm on an H200 took a third; a program whose tensors do not all come in that order loses of it elsewhere.
constexpr double kNormInOrder[] = {0.35, 1};

// A clone that is told a layout is none that the program asked for as a copy. The last input of aten::clone is the
// memory format: 0 is contiguous, 2 and 3 channels last; empty and 1 keep what is.
bool asks_for_layout(const OperatorInputs& given) {
  if (given.values.empty()) return false;
  const std::string& format = given.values.back();
  return format == "0" || format == "2" || format == "3";
}

// What a convolution does to its inputs and gradients is its own affair: the program cannot leave that out.
bool is_own_affair(const Trace& trace, SliceId copy, SliceId operation) {
  for (SliceId at = copy; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.name(at).find("convolution") != std::string_view::npos) return true;
    if (at == operation) break;
  }
  return false;
}

// What a module of a library does with views that it makes itself, such as the heads of its attention: the program can
// no more leave that out. An operator that copies what it was given since the program has turned it is another matter,
// and so is a module that does nothing else.
bool is_of_library(const Case& about, const Work& work) {
  constexpr std::array<std::string_view, 8> kViews = {"aten::contiguous", "aten::clone",     "aten::reshape",
                                                      "aten::flatten",    "aten::unflatten", "aten::view",
                                                      "aten::matmul",     "aten::einsum"};
  const Trace& trace = *work.trace;
  const std::string_view name = trace.name(passes(about).reason(trace, work.operation));
  if (std::find(kViews.begin(), kViews.end(), name) == kViews.end()) return false;
  const Code code = reason_code(about, work);
  const CodeFrame* own = code.own();
  if (own == nullptr) return false;
  return std::any_of(code.stack.begin() + (own - code.stack.data()) + 1, code.stack.end(),
                     [](const CodeFrame& frame) { return frame.is_module() && frame.module_class() != "Flatten"; });
}

// A sum of two gradients of one tensor.
bool adds_gradients(const Work& work) {
  if (work.inside == SliceId::none || work.trace->name(work.inside) != "aten::add") return false;
  const SliceId around = work.trace->slices.parent[work.inside];
  return around != SliceId::none && is_backward(work.trace->name(around));
}

// The operator that wants the other layout: what is around such a clone; none: it is another copy.
SliceId layout_wanted(const Case& about, const Work& work) {
  const Trace& trace = *work.trace;
  bool copies = false;
  for (SliceId at = work.inside; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) != SliceKind::cpu_op) break;
    const std::string_view name = trace.name(at);
    if (name == "aten::contiguous") return at;
    if (name == "aten::clone") {
      if (!asks_for_layout(inputs(about).of(trace, at))) return SliceId::none;
      copies = true;
    } else if (copies && (name == "aten::reshape" || name == "aten::flatten" || name == "aten::matmul" ||
                          name.starts_with("autograd::"))) {
      return at;
    } else if (name == "aten::to" || name == "aten::_to_copy") {
      return SliceId::none;
    }
    if (at == work.operation) break;
  }
  return copies ? work.operation : SliceId::none;
}

// Of a gradient whose order in memory is not that of its weight, on its way there.
bool accumulates(const Work& work) {
  if (work.inside == SliceId::none || work.trace->name(work.inside) != "aten::copy_") return false;
  const SliceId around = work.trace->slices.parent[work.inside];
  return around != SliceId::none && work.trace->name(around) == "torch::autograd::AccumulateGrad";
}

// Kernels with which a library turns what it was given into its own order, and back.
bool is_conversion(const Case& about, std::uint32_t node) {
  const ClassRule* rule = rule_of(*about.work(node).trace, about.predictor.graph().row[node]);
  return rule != nullptr && rule->name == "layout_library";
}

// In training, of images: the two that take most. What only moves the values is hardly faster in another order.
bool normalizes_by_planes(const Case& about, std::uint32_t node) {
  constexpr std::array<std::string_view, 2> kByPlanes = {"::batch_norm_collect_statistics_kernel<",
                                                         "::batch_norm_backward_kernel<"};
  constexpr std::size_t kImages = 4;  // dimensions
  const Work work = about.work(node);
  const bool is_norm = std::any_of(kByPlanes.begin(), kByPlanes.end(), [&](std::string_view name) {
    return work.name().find(name) != std::string_view::npos;
  });
  const SliceId asker = is_norm ? asker_of(about, node) : SliceId::none;
  const Sizes* given = asker == SliceId::none ? nullptr : inputs(about).of(*work.trace, asker).tensor();
  return given != nullptr && given->size() == kImages;
}

}  // namespace

Cause layout_copies_cause() {
  return {
      "layout_copies", "Copies that only change the order in memory",
      [](const Case& about, std::vector<Diagnosis>& out) {
        Gathered copies(about);
        std::set<std::int64_t> copied, turned;  // numbers of elements: of copies, of gradients that were copied back
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.operation == SliceId::none) return;
          const SliceId wanted = layout_wanted(about, work);
          if (wanted == SliceId::none || is_own_affair(*work.trace, wanted, work.operation)) return;
          if (is_of_library(about, work)) return;
          copies.add(node, work, work.trace->name(work.operation), 0, 0.1);
          copied.insert(inputs(about).of(*work.trace, work.inside).elements());
        });
        // What was copied comes back as a gradient in the other order, and is copied once more.
        copied.erase(0);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (!accumulates(work) || !copied.contains(inputs(about).of(*work.trace, work.inside).elements())) return;
          copies.add_along(node, 0, 0.1);
          turned.insert(inputs(about).of(*work.trace, work.inside).elements());
        });
        // A sum of two gradients in different orders goes through one of them in jumps, as a copy does.
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (!adds_gradients(work) || !turned.contains(inputs(about).of(*work.trace, work.inside).elements())) return;
          copies.add_along(node, kSumInOrder[0], kSumInOrder[1]);
        });
        const std::int64_t by_program_ns = copies.names().total_ns();
        for (const std::uint32_t node : device_work(about).nodes(DeviceClass::compute)) {
          if (!is_conversion(about, node)) continue;
          const Work work = about.work(node);
          copies.add(node, work, asker_name(about, node, work), 0, 0.1);
        }
        const std::int64_t copied_ns = copies.time_ns();
        const bool by_library = copies.names().total_ns() > 2 * by_program_ns;
        const bool may_turn_images = by_library && copies.worth_saying();
        for (const std::uint32_t node : device_work(about).nodes(DeviceClass::compute)) {
          if (may_turn_images && normalizes_by_planes(about, node))
            copies.add_along(node, kNormInOrder[0], kNormInOrder[1]);
        }
        const std::int64_t norms_ns = copies.time_ns() - copied_ns;
        copies.add_outputs();
        if (!copies.worth_saying()) return;
        out.push_back(copies.diagnosis(
            {.cause = "memory",
             .sentence = "Tensors are copied only to lie in another order in memory",
             .next = by_library
                         ? "Give the library the order that its kernels work in: memory_format=torch.channels_last for "
                           "the whole model and its inputs (model.to(…), images.to(…))"
                         : "Keep one layout: let operators work on the dimension where it is (normalize over channels "
                           "without permuting), memory_format=torch.channels_last for the whole model, einsum in "
                           "place of transpose and matmul"}));
        if (norms_ns > 0) {
          out.back().finding.evidence.push_back({.text = "Of these batch norms by planes, which may be faster then",
                                                 .value = about.share(norms_ns),
                                                 .unit = Unit::ratio});
        }
      }};
}

}  // namespace stepscope::diagnose::causes
