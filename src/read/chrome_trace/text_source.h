// TextSource: the text of a file as a sequence of chunks that begin where an event seems to begin.
//
// Chunks are contiguous and depend only on the text, never on who asks: any number of threads gives the same model.
// A plain file is cut at fixed distances by whoever takes the chunk; a compressed one is inflated chunk by chunk under
// a lock, so that inflating overlaps with the parsing of the chunks before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gzip_stream.h"

namespace stepscope::read::chrome_trace {

struct ChunkText {
  std::uint64_t index = 0;
  std::uint64_t offset = 0;  // of text() in the uncompressed file
  std::size_t begin = 0, size = 0;
  bool at_end = false;       // nothing follows
  std::vector<char> buffer;  // StrictWalk::kPadding readable bytes follow the text

  const char* text() const { return buffer.data() + begin; }
};

class TextSource {
 public:
  virtual ~TextSource() = default;
  // The first bytes of the text: at least `size` unless the text is shorter. Before start() only.
  virtual Result<std::string_view> peek(std::size_t size) = 0;
  // Chunks begin at byte `offset`, which lies within what was peeked.
  virtual void start(std::uint64_t offset) = 0;
  // The next chunk; false when there is none. May be called from several threads.
  virtual Result<bool> next(ChunkText& chunk) = 0;
  virtual std::uint64_t text_bytes() const = 0;  // so far
  virtual formats::GzipStream::Damage damage() const { return {}; }
};

inline constexpr std::size_t kChunkBytes = 512 << 10;

// `path` is for messages. `max_text_bytes` 0: 100 times the compressed size, 64 MiB at least.
std::unique_ptr<TextSource> plain_source(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes);
std::unique_ptr<TextSource> gzip_source(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes,
                                        std::uint64_t max_text_bytes);

}  // namespace stepscope::read::chrome_trace
