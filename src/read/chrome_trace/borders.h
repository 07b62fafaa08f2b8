// Where a chunk of events may start: "} , {" followed by a key that events start with. A candidate may be a false one
// (inside a text or a nested list); whoever uses it must prove it by parsing up to it.
#pragma once

#include <cstddef>

namespace stepscope::read::chrome_trace {

inline constexpr std::size_t kNoBorder = static_cast<std::size_t>(-1);
inline constexpr std::size_t kBorderReach = 64;  // a candidate is judged by this many bytes on either side

// The first candidate at or after `from` in text[0, size), judged without looking before `floor`.
std::size_t next_border(const char* text, std::size_t from, std::size_t floor, std::size_t size);
// The last candidate in text[0, size).
std::size_t last_border(const char* text, std::size_t size);

}  // namespace stepscope::read::chrome_trace
