// What tests of causes ask of an answer. Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "model/answer.h"

namespace stepscope::diagnose {

inline const Finding* find(const Answer& answer, std::string_view id) {
  const auto found =
      std::find_if(answer.findings.begin(), answer.findings.end(), [&](const Finding& one) { return one.id == id; });
  return found == answer.findings.end() ? nullptr : &*found;
}

inline double evidence(const Finding& finding, std::string_view text) {
  for (const Evidence& one : finding.evidence) {
    if (one.text != text) continue;
    if (const auto* number = std::get_if<std::int64_t>(&one.value)) return static_cast<double>(*number);
    return std::get<double>(one.value);
  }
  FAIL("no evidence ", text);
  return 0;
}

}  // namespace stepscope::diagnose
