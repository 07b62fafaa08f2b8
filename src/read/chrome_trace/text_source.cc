#include "read/chrome_trace/text_source.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "read/chrome_trace/borders.h"
#include "read/chrome_trace/strict_walk.h"

namespace stepscope::read::chrome_trace {
namespace {

constexpr std::size_t kBorderSearch = 256 << 10;  // beyond its nominal end, a chunk looks this far for an event
constexpr std::size_t kSlack = 4 << 10;

void pad(ChunkText& chunk, std::size_t used) {
  if (chunk.buffer.size() < used + StrictWalk::kPadding) chunk.buffer.resize(used + StrictWalk::kPadding);
  std::memset(chunk.buffer.data() + used, ' ', StrictWalk::kPadding);
}

class PlainSource final : public TextSource {
 public:
  PlainSource(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes)
      : fd_(fd), file_bytes_(file_bytes), path_(std::move(path)), chunk_bytes_(chunk_bytes) {}

  Result<std::string_view> peek(std::size_t size) override {
    head_.resize(std::min<std::uint64_t>(size, file_bytes_));
    const std::size_t got = fetch(head_.data(), head_.size(), 0);
    if (got < head_.size()) return fail(incomplete(got));
    return std::string_view(head_.data(), head_.size());
  }

  void start(std::uint64_t offset) override {
    start_ = offset;
    head_ = {};
  }

  Result<bool> next(ChunkText& chunk) override {
    const std::uint64_t index = next_++;
    const std::uint64_t from = start_ + index * chunk_bytes_;
    if (from >= file_bytes_ && index > 0) return false;
    const std::uint64_t to = from + chunk_bytes_;
    // The text is read from a little before the nominal start, so that a border can be judged there.
    const std::uint64_t base = index == 0 ? from : from - kBorderReach;
    std::size_t got = 0, begin = kNoBorder, end = kNoBorder;
    for (std::size_t slack = kSlack; end == kNoBorder; slack = std::min(4 * slack, kBorderSearch)) {
      const std::uint64_t limit = std::min(file_bytes_, to + slack);
      const auto want = static_cast<std::size_t>(limit - base);
      if (chunk.buffer.size() < want + StrictWalk::kPadding) chunk.buffer.resize(want + StrictWalk::kPadding);
      got += fetch(chunk.buffer.data() + got, want - got, base + got);
      if (got < want) return fail(incomplete(base + got));
      const bool all = limit == file_bytes_ || slack == kBorderSearch;
      if (begin == kNoBorder) begin = index == 0 ? 0 : border(chunk, from, base, got, all);
      if (begin != kNoBorder) end = border(chunk, to, base, got, all);
    }
    chunk.index = index;
    chunk.offset = base + begin;
    chunk.begin = begin;
    chunk.size = end > begin ? end - begin : 0;
    chunk.at_end = base + end >= file_bytes_;
    // Bytes of the next chunk follow: they serve as padding, being readable.
    if (got < end + StrictWalk::kPadding) pad(chunk, got);
    return true;
  }

  std::uint64_t text_bytes() const override { return file_bytes_; }

 private:
  // The border for the nominal place `at`, relative to `base`. kNoBorder: more text is needed. When there is none
  // within reach, the nominal place itself (or the end) is taken: the parse there fails and is repaired in order.
  std::size_t border(const ChunkText& chunk, std::uint64_t at, std::uint64_t base, std::size_t got, bool all) const {
    if (at >= file_bytes_) return all ? static_cast<std::size_t>(file_bytes_ - base) : kNoBorder;
    const auto from = static_cast<std::size_t>(at - base);
    const std::size_t floor = from > kBorderReach ? from - kBorderReach : 0;
    // Both neighbours judge a border by the same bytes, whatever each of them has read.
    const std::size_t limit = std::min<std::uint64_t>(got, from + kBorderSearch);
    const std::size_t found = next_border(chunk.buffer.data(), from, floor, limit);
    if (found != kNoBorder && (found + kBorderReach <= limit || all)) return found;
    if (!all) return kNoBorder;
    const std::uint64_t left = file_bytes_ - at;
    return left <= kBorderSearch ? static_cast<std::size_t>(file_bytes_ - base) : from;
  }

  std::size_t fetch(char* out, std::size_t size, std::uint64_t at) const {
    std::size_t got = 0;
    while (got < size) {
      const ssize_t n = pread(fd_, out + got, size - got, static_cast<off_t>(at + got));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }

  // Fewer bytes came than the file had when it was opened, from `at` on.
  Error incomplete(std::uint64_t at) const {
    char byte = 0;
    if (pread(fd_, &byte, 1, static_cast<off_t>(at)) < 0) {
      return {ErrorKind::unreadable, std::string("cannot be read: ") + std::strerror(errno), path_, at,
              "Copy the file to another disk and open it there"};
    }
    return {ErrorKind::changed, "the file became shorter while it was read", path_, at,
            "Open it again when it is complete"};
  }

  int fd_;
  std::uint64_t file_bytes_, start_ = 0;
  std::string path_;
  std::size_t chunk_bytes_;
  std::vector<char> head_;
  std::atomic<std::uint64_t> next_{0};
};

class GzipSource final : public TextSource {
 public:
  GzipSource(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes, std::uint64_t limit)
      : stream_(fd, file_bytes), path_(std::move(path)), chunk_bytes_(chunk_bytes) {
    limit_ = limit > 0 ? limit : std::max<std::uint64_t>(100 * file_bytes, 64 << 20);
  }

  Result<std::string_view> peek(std::size_t size) override {
    if (carry_.size() < size) {
      const std::size_t known = carry_.size();
      carry_.resize(size);
      carry_.resize(known + stream_.read(carry_.data() + known, size - known));
      inflated_ = carry_.size();
    }
    return std::string_view(carry_.data(), carry_.size());
  }

  void start(std::uint64_t offset) override {
    carry_.erase(carry_.begin(), carry_.begin() + static_cast<std::ptrdiff_t>(offset));
    offset_ = offset;
  }

  Result<bool> next(ChunkText& chunk) override {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    const std::size_t kept = carry_.size();
    const std::size_t goal = std::max(kept, chunk_bytes_) + (kept >= chunk_bytes_ ? chunk_bytes_ : 0);
    if (chunk.buffer.size() < goal + StrictWalk::kPadding) chunk.buffer.resize(goal + StrictWalk::kPadding);
    std::copy(carry_.begin(), carry_.end(), chunk.buffer.begin());
    const std::size_t got = kept + stream_.read(chunk.buffer.data() + kept, goal - kept);
    inflated_ += got - kept;
    if (inflated_ > limit_) {
      return fail({ErrorKind::too_large,
                   "the compressed text grows beyond the limit of " + std::to_string(limit_ >> 20) + " MiB", path_,
                   limit_, "Set STEPSCOPE_MAX_TEXT_MB to a higher limit if the file is to be trusted"});
    }
    ended_ = got < goal;
    std::size_t cut = got;
    if (!ended_) {
      const std::size_t border = last_border(chunk.buffer.data(), got);
      if (border != kNoBorder && border > 0) cut = border;
    }
    carry_.assign(chunk.buffer.begin() + static_cast<std::ptrdiff_t>(cut),
                  chunk.buffer.begin() + static_cast<std::ptrdiff_t>(got));
    chunk.index = index_++;
    chunk.offset = offset_;
    chunk.begin = 0;
    chunk.size = cut;
    chunk.at_end = ended_;
    offset_ += cut;
    pad(chunk, got);
    return true;
  }

  std::uint64_t text_bytes() const override { return inflated_; }
  formats::GzipStream::Damage damage() const override { return stream_.damage(); }

 private:
  formats::GzipStream stream_;
  std::string path_;
  std::size_t chunk_bytes_;
  std::uint64_t limit_;
  std::mutex mutex_;
  std::vector<char> carry_;  // inflated, not yet given out
  std::uint64_t offset_ = 0, inflated_ = 0, index_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<TextSource> plain_source(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes) {
  return std::make_unique<PlainSource>(fd, file_bytes, std::move(path), chunk_bytes);
}

std::unique_ptr<TextSource> gzip_source(int fd, std::uint64_t file_bytes, std::string path, std::size_t chunk_bytes,
                                        std::uint64_t max_text_bytes) {
  return std::make_unique<GzipSource>(fd, file_bytes, std::move(path), chunk_bytes, max_text_bytes);
}

}  // namespace stepscope::read::chrome_trace
