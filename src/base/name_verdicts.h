// NameVerdicts: what a function says about a name, asked once per distinct string of a pool.
//
// Expected workload: 10^5 to 10^7 questions about 10^2 to 10^5 names. Verdict must be a small value; one of its values
// is given up to mean "not asked yet".
#pragma once

#include <string_view>
#include <vector>

#include "base/string_pool.h"

namespace stepscope {

template <class Verdict, class Judge>
class NameVerdicts {
 public:
  NameVerdicts(const StringPool& names, Verdict unasked, Judge judge)
      : names_(names), unasked_(unasked), judge_(std::move(judge)), verdicts_(names.size(), unasked) {}

  // The name "" is judged for StringId::none.
  Verdict operator()(StringId name) {
    if (name == StringId::none) return judge_(std::string_view());
    Verdict& verdict = verdicts_[static_cast<std::size_t>(name)];
    if (verdict == unasked_) verdict = judge_(names_[name]);
    return verdict;
  }

 private:
  const StringPool& names_;
  Verdict unasked_;
  Judge judge_;
  std::vector<Verdict> verdicts_;
};

}  // namespace stepscope
