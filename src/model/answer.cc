#include "model/answer.h"

#include <algorithm>
#include <array>

namespace stepscope {

std::string_view to_string(Unit unit) {
  static constexpr std::array<std::string_view, 9> names{"",     "ns",      "bytes", "count", "ratio",
                                                         "GB/s", "Unix ns", "FLOP",  "FLOP/s"};
  return names[static_cast<std::size_t>(unit)];
}

std::string_view to_string(ValueType type) {
  static constexpr std::array<std::string_view, 4> names{"integer", "real", "text", "boolean"};
  return names[static_cast<std::size_t>(type)];
}

const Scalar* Answer::scalar(std::string_view wanted) const {
  const auto found = std::find_if(scalars.begin(), scalars.end(), [&](const Scalar& s) { return s.name == wanted; });
  return found == scalars.end() ? nullptr : &*found;
}

std::optional<std::int64_t> Answer::whole(std::string_view wanted) const {
  const Scalar* found = scalar(wanted);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

const Table* Answer::table(std::string_view wanted) const {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table& t) { return t.name == wanted; });
  return found == tables.end() ? nullptr : &*found;
}

const Answer* Report::answer(std::string_view wanted) const {
  const auto found = std::find_if(answers.begin(), answers.end(), [&](const Answer& a) { return a.name == wanted; });
  return found == answers.end() ? nullptr : &*found;
}

Result<Answer> titled(Result<Answer> answer, std::string_view name, std::string_view summary) {
  if (answer) {
    answer->name = name;
    answer->summary = summary;
  }
  return answer;
}

}  // namespace stepscope
