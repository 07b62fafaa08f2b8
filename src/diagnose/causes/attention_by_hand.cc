// Attention written as its formula: product, scaling, mask, softmax and product one after the other, each of which
// writes and reads a score for every pair of positions.
#include <algorithm>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kFarApart = 12;  // operators between the softmax and its products

bool is_softmax(std::string_view name) { return name == "aten::softmax" || name == "aten::_softmax"; }

// Is one of the tensors that it is given of the scores?
bool is_scores(const Operator& one, std::int64_t scores) {
  return std::any_of(one.inputs->shapes.begin(), one.inputs->shapes.end(), [&](const Shape& shape) {
    const auto fits = [&](const Sizes& sizes) { return !sizes.empty() && elements(sizes) == scores; };
    return fits(shape.sizes) || std::any_of(shape.list.begin(), shape.list.end(), fits);
  });
}

// Written out itself: exp(), and the sum of what it gives, by which that or what is made of it is divided.
bool is_softmax_by_hand(const std::vector<Operator>& all, std::size_t at, std::int64_t scores) {
  if (all[at].name != "aten::exp" && all[at].name != "aten::exp_") return false;
  bool summed = false;
  for (std::size_t i = at + 1; i < all.size() && i - at <= kFarApart && all[i].trace == all[at].trace; i++) {
    if (all[i].name == "aten::sum" && is_scores(all[i], scores)) summed = true;
    if (summed && (all[i].name == "aten::div" || all[i].name == "aten::div_")) return true;
  }
  return false;
}

// The scores are what the product before gave and what the product behind takes: as many elements as the softmax has.
struct ByHand {
  std::size_t first = 0, softmax = 0, last = 0;
};

std::vector<ByHand> found_in(const std::vector<Operator>& all) {
  std::vector<ByHand> out;
  for (std::size_t at = 0; at < all.size(); at++) {
    const Sizes* sizes = all[at].inputs->tensor();
    if (sizes == nullptr || sizes->size() < 3) continue;
    const std::int64_t scores = elements(*sizes);
    if (!is_softmax(all[at].name) && !is_softmax_by_hand(all, at, scores)) continue;
    ByHand one{.first = at, .softmax = at, .last = at};
    for (std::size_t i = at; i-- > 0 && at - i <= kFarApart && all[i].trace == all[at].trace;) {
      if (is_product(all[i].name)) {
        one.first = i;
        break;
      }
    }
    for (std::size_t i = at + 1; i < all.size() && i - at <= kFarApart && all[i].trace == all[at].trace; i++) {
      if (is_product(all[i].name) && is_scores(all[i], scores)) {
        one.last = i;
        break;
      }
    }
    if (one.first < at && one.last > at) out.push_back(one);
  }
  return out;
}

}  // namespace

Cause attention_by_hand_cause() {
  return {
      "attention_by_hand", "Attention of single operators", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered work_of(about);
        // What lies between the products is gone, the products themselves are done in parts that stay in a cache. The
        // backward pass makes the scores again: five products in place of four. On a device tensor cores are better
        // used.
        const auto add = [&](const Operator& one, double least, double most, double again = 1) {
          work_of.add(pass.nodes(*one.trace, one.slice), one.name, least, most);
          work_of.add(pass.backward_nodes(*one.trace, one.slice), one.name, least, again * most);
        };
        const bool on_device = about.trace.device.size() > 0;
        const Operator* softmax = nullptr;
        for (const ByHand& one : found_in(all)) {
          if (softmax == nullptr) softmax = &all[one.softmax];
          for (std::size_t i = one.first; i <= one.last; i++) {
            if (i == one.first || i == one.last) {
              add(all[i], on_device ? 0.5 : 0.9, 1, on_device ? 1 : 1.25);
            } else if (!is_product(all[i].name)) {
              add(all[i], i == one.softmax && !on_device ? 0.5 : 0, i != one.softmax ? 0.1 : on_device ? 0.5 : 1);
            }
          }
        }
        work_of.add_outputs();
        if (!work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "kernels",
             .sentence = "Attention is written out: every score of every pair of positions is written to memory and "
                         "read again by each operator",
             .next = "Use torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), or attn_mask= "
                     "for another mask"});
        // Products by "@" show no line; the softmax between them is called by its name.
        if (softmax != nullptr) {
          const Code code = about.code(*softmax->trace, softmax->slice);
          if (code.call_line > 0) code.put_into(found.finding.where);
        }
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
