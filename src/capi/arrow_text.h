// Text as Arrow holds it (large_utf8: 64-bit offsets, so no table is too big), and the dictionaries of pooled strings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/arrow_data.h"
#include "tables/table_spec.h"

namespace stepscope::capi {

inline constexpr const char* kTextFormat = "U";
inline constexpr const char* kIndexFormat = "i";

class Texts {
 public:
  // Arrow promises valid UTF-8, a trace file promises nothing: invalid bytes become U+FFFD.
  void add(std::string_view text);
  std::size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    const auto begin = static_cast<std::size_t>(ends_[i]);
    return std::string_view(bytes_).substr(begin, static_cast<std::size_t>(ends_[i + 1]) - begin);
  }
  const std::int64_t* ends() const { return ends_.data(); }
  const char* bytes() const { return bytes_.data(); }

 private:
  std::vector<std::int64_t> ends_{0};
  std::string bytes_;
};

// One dictionary for a column of all traces, each distinct text once, in order of first use by code. The same in every
// batch of a stream: not every consumer accepts dictionaries that change from batch to batch.
struct ColumnDictionary {
  std::shared_ptr<const Texts> texts;
  std::vector<std::vector<std::int32_t>> index;  // [trace][code] → row of `texts`; -1: does not occur
};

ColumnDictionary make_dictionary(const tables::Codes& codes, std::size_t (*rows)(const Trace&),
                                 std::span<const Trace> traces);

// `validity` may be empty: all rows have a value.
ArrowArray text_array(std::shared_ptr<const Texts> texts, std::int64_t null_count, std::vector<std::uint8_t> validity);

}  // namespace stepscope::capi
