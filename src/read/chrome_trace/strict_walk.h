// The fast path: walks simdjson's structural index over a chunk of valid JSON events.
#pragma once

#include <cstddef>
#include <memory>

#include "read/chrome_trace/decoder.h"

namespace stepscope::read::chrome_trace {

struct WalkEnd {
  bool closed = false;        // the event array's ']' was met …
  std::size_t closed_at = 0;  // … at this byte of the chunk
};

class StrictWalk {
 public:
  StrictWalk();
  ~StrictWalk();
  // Text buffers need this many readable bytes behind the chunk.
  static constexpr std::size_t kPadding = 128;

  // Feeds every event of text[0, size) to the decoder. The text must start at an event and end behind the comma that
  // follows one (or hold the array's end). False: it does not, or something in it is not valid JSON; the rows fed so
  // far are to be thrown away.
  bool walk(Decoder& decoder, const char* text, std::size_t size, WalkEnd& end);

 private:
  struct Index;
  std::unique_ptr<Index> index_;
};

}  // namespace stepscope::read::chrome_trace
