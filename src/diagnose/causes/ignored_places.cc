// A loss that takes nothing of many places, as of words that were not masked: their odds are worked out all the same.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/source.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kTelling = 0.3;       // of the places
constexpr std::size_t kFarApart = 24;  // operators between the product that gives the odds and the loss
// Of the places that are left: picking them copies them, and smaller products are slower for their size.
constexpr double kMostMore = 1.5;

bool is_loss(std::string_view name) { return name == "aten::cross_entropy_loss"; }

// The product that gives what the loss takes, and all behind it; where there is none, the loss alone.
std::size_t product_of(const std::vector<Operator>& all, std::size_t loss) {
  if (all[loss].inputs->shapes.empty() || all[loss].inputs->shapes[0].sizes.size() < 2) return loss;
  const Sizes& given_loss = all[loss].inputs->shapes[0].sizes;  // places, classes, and more of places
  const std::int64_t odds = elements(given_loss), places = odds / std::max<std::int64_t>(given_loss[1], 1);
  for (std::size_t i = loss; i-- > 0 && loss - i <= kFarApart;) {
    if (all[i].trace != all[loss].trace || all[i].step != all[loss].step) break;
    if (!is_product(all[i].name)) {
      if (is_view(all[i].name) || all[i].inputs->elements() == odds) continue;
      break;
    }
    const Sizes* given = all[i].inputs->tensor();
    const bool gives = given != nullptr && given->back() > 0 && elements(*given) / given->back() == places;
    return gives ? i : loss;
  }
  return loss;
}

}  // namespace

Cause ignored_places_cause() {
  return {"ignored_places", "Odds of places that the loss ignores", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered work_of(about);
            const std::vector<Source::Ignored> said = about.places.source(about.trace).ignored();
            const auto least = std::min_element(said.begin(), said.end(),
                                                [](const auto& a, const auto& b) { return a.share < b.share; });
            if (least == said.end() || least->share < kTelling) return;
            const double low = 1 - least->share, high = std::min(1.0, kMostMore * low);
            for (std::size_t loss = 0; loss < all.size(); loss++) {
              if (!is_loss(all[loss].name)) continue;
              for (std::size_t i = product_of(all, loss); i <= loss; i++) {
                const Operator& one = all[i];
                work_of.add(pass.nodes(*one.trace, one.slice), one.name, low, high);
                work_of.add(pass.backward_nodes(*one.trace, one.slice), one.name, low, high);
              }
            }
            if (!work_of.worth_saying()) return;
            Diagnosis found = work_of.diagnosis(
                {.cause = "model",
                 .sentence = "The loss takes nothing of many places, whose odds are worked out all the same",
                 .next = "Pick the places first: keep = target != ignore_index; loss(head(hidden[keep]), target[keep])",
                 .doubt = "how many are ignored was seen in one step"});
            put_call(*least->call, found.finding.where);
            found.finding.evidence.push_back({.text = "Of the places", .value = least->share, .unit = Unit::ratio});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
