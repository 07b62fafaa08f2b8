// Each chunk's start is only a guess (borders.h). The proof is by induction: chunk 0 starts at the first event; a chunk
// whose strict walk ends exactly behind an event's comma proves the start of the next one. A chunk that does not is
// walked again by the tolerant walk, which carries what is left of it (an unfinished event) over to the next chunk, so
// false borders and damage are handled by the same few lines.
#include "read/chrome_trace/pipeline.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stepscope::read::chrome_trace {
namespace {

// One chunk on its way from a worker to the assembler. The buffers are reused.
struct Parcel {
  ChunkText chunk;
  Batch batch;
  std::size_t worker = 0;
  bool valid = false;  // the strict walk took it
  WalkEnd end;
};

class Pipeline {
 public:
  Pipeline(TextSource& source, Assembler& assembler, unsigned threads, bool tolerant_only, const std::string& path)
      : source_(source), assembler_(assembler), threads_(threads), tolerant_only_(tolerant_only), path_(path) {
    for (unsigned i = 0; i < 2 * threads + 1; i++) free_.push_back(std::make_unique<Parcel>());
    for (unsigned i = 0; i < threads; i++) decoders_.push_back(std::make_unique<Decoder>());
  }

  Result<PipelineEnd> run() {
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < threads_; i++) helpers.emplace_back([this, i] { work(i); });
    work(0);
    for (std::thread& helper : helpers) helper.join();
    if (error_) return fail(*std::move(error_));
    if (!end_.closed && !carry_.empty()) take_tolerant(nullptr, true);
    assembler_.finish(tolerant_.damage());
    return std::move(end_);
  }

 private:
  void work(std::size_t worker) {
    StrictWalk strict;
    Decoder& decoder = *decoders_[worker];
    while (std::unique_ptr<Parcel> parcel = take_free()) {
      Result<bool> more = source_.next(parcel->chunk);
      if (!more || !*more) {
        stop(more ? std::nullopt : std::optional<Error>(more.error()));
        return;
      }
      const ChunkText& chunk = parcel->chunk;
      parcel->batch.clear();
      parcel->batch.text_offset = chunk.offset;
      parcel->worker = worker;
      decoder.start(parcel->batch, chunk.text());
      parcel->valid =
          !tolerant_only_ && !closed_ && chunk.size > 0 && strict.walk(decoder, chunk.text(), chunk.size, parcel->end);
      submit(std::move(parcel));
    }
  }

  // A worker takes its parcel before its chunk, so whoever holds the oldest chunk can always go on.
  std::unique_ptr<Parcel> take_free() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !free_.empty() || stopped_; });
    if (stopped_) return nullptr;
    std::unique_ptr<Parcel> parcel = std::move(free_.back());
    free_.pop_back();
    return parcel;
  }

  void stop(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = std::move(error);
    if (error_) stopped_ = true;
    freed_.notify_all();
  }

  void submit(std::unique_ptr<Parcel> parcel) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(parcel->chunk.index, std::move(parcel));
    while (!waiting_.empty() && waiting_.begin()->first == next_index_) {
      std::unique_ptr<Parcel> oldest = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      next_index_++;
      if (!error_) take(*oldest);
      free_.push_back(std::move(oldest));
      freed_.notify_one();
    }
  }

  void take(Parcel& parcel) {
    assembler_.learn(parcel.worker, parcel.batch);
    const ChunkText& chunk = parcel.chunk;
    if (end_.closed) {
      keep_tail({chunk.text(), chunk.size});
    } else if (parcel.valid && carry_.empty()) {
      assembler_.commit(parcel.worker, parcel.batch);
      tolerant_.restart();
      if (parcel.end.closed) close(chunk.offset, {chunk.text(), chunk.size}, parcel.end);
    } else if (chunk.size > 0) {
      take_tolerant(&chunk, chunk.at_end);
    }
  }

  // Walks what was carried over and the chunk's text as one. A long event is tried again only when twice as much of it
  // is there, so that its text is walked a constant number of times however it was cut.
  void take_tolerant(const ChunkText* chunk, bool at_end) {
    if (carry_.empty() && chunk != nullptr) carry_offset_ = chunk->offset;
    const std::uint64_t offset = carry_offset_;
    if (chunk != nullptr) carry_.append(chunk->text(), chunk->size);
    if (!at_end && carry_.size() < retry_size_ && carry_.size() <= kEventLimit) return;
    std::string text = std::move(carry_);
    const std::size_t size = text.size();
    text.append(StrictWalk::kPadding, ' ');
    tolerant_batch_.clear();
    tolerant_batch_.text_offset = offset;
    tolerant_decoder_.start(tolerant_batch_, text.data());
    WalkEnd end;
    const std::size_t used = tolerant_.walk(tolerant_decoder_, text.data(), size, offset, at_end, end);
    assembler_.learn(threads_, tolerant_batch_);
    assembler_.commit(threads_, tolerant_batch_);
    carry_.clear();
    if (end.closed) return close(offset, {text.data(), size}, end);
    carry_.assign(text, used, size - used);
    carry_offset_ = offset + used;
    retry_size_ = 2 * carry_.size();
    if (carry_.size() > kEventLimit) {
      error_ = Error{ErrorKind::too_large, "an event is longer than 64 MiB or never closed", path_, carry_offset_,
                     "Look at the file around that byte"};
      stopped_ = true;
    }
  }

  void close(std::uint64_t offset, std::string_view text, const WalkEnd& end) {
    end_.closed = closed_ = true;
    end_.tail_offset = offset + end.closed_at + 1;
    keep_tail(text.substr(end.closed_at + 1));
  }

  void keep_tail(std::string_view text) {
    const std::size_t room = kTailLimit - end_.tail.size();
    end_.tail.append(text.substr(0, room));
    if (text.size() <= room) return;
    const bool blank = text.find_first_not_of(kBlank, room) == text.npos;
    if (!blank || end_.tail_dropped > 0) end_.tail_dropped += text.size() - room;
  }

  TextSource& source_;
  Assembler& assembler_;
  const unsigned threads_;
  const bool tolerant_only_;
  const std::string& path_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Parcel>> free_;
  std::map<std::uint64_t, std::unique_ptr<Parcel>> waiting_;
  std::uint64_t next_index_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;

  std::vector<std::unique_ptr<Decoder>> decoders_;  // by worker; batches on their way look into their texts
  std::atomic<bool> closed_{false};
  TolerantWalk tolerant_;
  Decoder tolerant_decoder_;
  Batch tolerant_batch_;
  std::string carry_;  // the start of an event whose rest has not come yet
  std::uint64_t carry_offset_ = 0;
  std::size_t retry_size_ = 0;
  PipelineEnd end_;
};

}  // namespace

Result<PipelineEnd> run_pipeline(TextSource& source, Assembler& assembler, unsigned threads, bool tolerant_only,
                                 const std::string& path) {
  return Pipeline(source, assembler, threads, tolerant_only, path).run();
}

}  // namespace stepscope::read::chrome_trace
