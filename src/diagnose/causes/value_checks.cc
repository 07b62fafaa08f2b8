// Tensors that are looked through for NaN in each step: all of their numbers are read for one that is no result.
#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 3> kLooks{"aten::isnan", "aten::isinf", "aten::isfinite"};
constexpr std::array<std::string_view, 7> kJoins{"aten::any",        "aten::all",         "aten::sum",
                                                 "aten::logical_or", "aten::logical_not", "aten::bitwise_or",
                                                 "aten::bitwise_not"};
constexpr std::array<std::string_view, 3> kReads{"aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Behind the last operator of the check that begins with this one; itself where no number is read in the end: then
// something else is made of what was found, such as a mask.
std::size_t end_of_check(const std::vector<Operator>& all, std::size_t first) {
  std::size_t at = first + 1;
  const auto goes_on = [&](const auto& names) {
    return at < all.size() && all[at].trace == all[first].trace && is_one_of(names, all[at].name);
  };
  while (goes_on(kJoins) || goes_on(kLooks)) at++;
  return at > first + 1 && goes_on(kReads) ? at + 1 : first;
}

}  // namespace

Cause value_checks_cause() {
  return {"value_checks", "Tensors looked through for NaN", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr double kMostLeft = 0.02;  // of a check in every 50th step
            const std::vector<Operator>& all = forward_operators(about);
            Gathered checks(about);
            std::int64_t count = 0;
            for (std::size_t i = 0; i < all.size(); i++) {
              if (!is_one_of(kLooks, all[i].name)) continue;
              const std::size_t end = end_of_check(all, i);
              if (end == i) continue;
              if (all[i].trace == &about.trace && all[i].step != StepId::none) count++;
              for (; i < end; i++) {
                checks.add(passes(about).nodes(*all[i].trace, all[i].slice), all[i].name, 0, kMostLeft);
                if (i + 1 < end) checks.add(all[i].after, "code between operators", 0, kMostLeft);
              }
              i--;
            }
            if (!checks.worth_saying()) return;
            Diagnosis found = checks.diagnosis(
                {.cause = "debug",
                 .sentence = "Whole tensors are looked through for NaN in the steps",
                 .next = "Look at the loss alone, which a NaN before it spoils as well, or look in every 50th step",
                 .doubt = "that the job can do without is for you to say"});
            found.finding.evidence.push_back(
                {.text = "Checks per step", .value = count / about.steps, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
