// Tensors that are looked through for NaN in each step: all of their numbers are read for one that is no result.
#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 3> kLooks{"aten::isnan", "aten::isinf", "aten::isfinite"};
constexpr std::array<std::string_view, 4> kTurns{"aten::logical_or", "aten::logical_not", "aten::bitwise_or",
                                                 "aten::bitwise_not"};
constexpr std::array<std::string_view, 2> kJoins{"aten::any", "aten::all"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Is it given more than one number, as far as is known?
bool is_large(const Operator& one) { return !one.inputs->known() || one.inputs->elements() > 1; }

struct Check {
  std::size_t end = 0;    // behind its last operator
  bool is_one = false;    // a number is read in the end; else something else is made of what was found, such as a mask
  bool is_whole = false;  // more is looked through than one number, as a loss is
};

Check check_from(const std::vector<Operator>& all, std::size_t first) {
  Check out{.end = first};
  const auto goes_on = [&](const auto& names) {
    return out.end < all.size() && all[out.end].trace == all[first].trace && is_one_of(names, all[out.end].name);
  };
  while (goes_on(kLooks) || goes_on(kTurns)) out.is_whole = is_large(all[out.end++]) || out.is_whole;
  bool joined = false;
  while (goes_on(kJoins) || goes_on(kTurns)) joined = true, out.end++;
  const bool reads = out.end < all.size() && all[out.end].trace == all[first].trace && reads_number(all[out.end].name);
  if (!joined || !reads) return out;
  out.is_one = true;
  out.end++;
  return out;
}

}  // namespace

Cause value_checks_cause() {
  return {
      "value_checks", "Tensors looked through for NaN", [](const Case& about, std::vector<Diagnosis>& out) {
        constexpr double kMostLeft = 0.02;  // of a check in every 50th step
        const std::vector<Operator>& all = forward_operators(about);
        Gathered checks(about);
        std::int64_t count = 0;
        for (std::size_t i = 0; i < all.size();) {
          const Check check = is_one_of(kLooks, all[i].name) ? check_from(all, i) : Check{.end = i + 1};
          if (!check.is_one || !check.is_whole) {
            i = check.end;
            continue;
          }
          if (all[i].trace == &about.trace && all[i].step != StepId::none) count++;
          for (; i < check.end; i++) {
            checks.add(passes(about).nodes(*all[i].trace, all[i].slice), all[i].name, 0, kMostLeft);
            if (i + 1 < check.end) checks.add(all[i].after, "code between operators", 0, kMostLeft);
          }
        }
        if (!checks.worth_saying()) return;
        Diagnosis found = checks.diagnosis(
            {.cause = "debug",
             .sentence = "Whole tensors are looked through for NaN in the steps",
             .next = "Look at the loss alone, which a NaN before it spoils as well, or look in every 50th step",
             .doubt = "that the job can do without is for you to say"});
        found.finding.evidence.push_back({.text = "Checks in the recorded steps", .value = count, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
