// The text of the file that a trace was read from, for the arguments of its events as they were recorded.
//
// The model holds places in that text, not the text. It is read again, whole, since slices are written lane by lane and
// lie anywhere in it; files of more text than kMostText are not, so that memory stays bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/trace.h"

namespace stepscope::write::perfetto {

inline constexpr std::uint64_t kMostText = 256 << 20;

class SourceText {
 public:
  explicit SourceText(const Trace& trace);
  // The arguments of the slice's event, one JSON object; empty: it has none, or the text is out of reach.
  std::string_view arguments(SliceId slice) const;
  // Why the text is out of reach; empty: it is there.
  std::string_view missing() const { return missing_; }

 private:
  const Trace& trace_;
  std::string text_;
  std::string_view missing_;
};

}  // namespace stepscope::write::perfetto
