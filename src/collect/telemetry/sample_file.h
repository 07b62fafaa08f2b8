// Writes telemetry/HOST_PID.samples and HOST_PID.series.jsonl: a mapped ring and the words to its numbers.
//
// What was written is there after a SIGKILL. The file grows up to its limit before what is new in it is written to,
// since writing into a hole of a full disk would end us with SIGBUS; where it cannot grow, the oldest samples make
// room.
//
// Several threads may write to it; after close() none does.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

// A series, and its newest sample.
struct Newest {
  run::SeriesAbout about;
  std::int64_t monotonic_ns = 0;  // 0: it has none
  std::uint64_t bits = 0;         // as in the file

  double value() const;
};

class SampleFile : public Sink {
 public:
  // Makes both files in <run folder>/telemetry. `most_bytes`: of the ring.
  static Result<SampleFile> create(const std::string& run_folder, std::uint64_t most_bytes);
  SampleFile(SampleFile&& other) noexcept;
  SampleFile& operator=(SampleFile&&) = delete;
  ~SampleFile() override;

  std::uint32_t series(const run::SeriesAbout& about) override;
  // What the collectors call `target` is this to all readers, its series so far too.
  void rename(const std::string& target, const std::string& name);
  void add(std::uint32_t series, std::int64_t count) override;
  void add(std::uint32_t series, double level) override;
  // A pair of clocks; once a second is enough.
  void clock();
  // What was added goes into the file, where it outlives us. By writing, not through a map: where the file is cut short
  // or its file system vanishes, that ends the samples and not the process.
  void flush();
  void close();
  std::string problem() const;  // why nothing more is written; empty: nothing is wrong

  const std::string& path() const { return path_; }
  std::uint64_t written() const;
  std::vector<Newest> newest() const;  // of all series, by their numbers

 private:
  SampleFile() = default;
  // With the mutex held.
  int grow();  // errno of why not
  void describe(std::uint32_t number);
  void write_pending();
  void write_at(std::uint64_t place, const void* bytes, std::size_t many);
  void put(std::uint32_t series, std::uint64_t value, std::int64_t monotonic_ns);

  std::string path_;
  mutable std::mutex mutex_;                  // of all that follows
  int file_ = -1, words_ = -1;                // the ring; the series
  std::uint64_t most_bytes_ = 0, bytes_ = 0;  // of the file, at most and now
  std::uint64_t records_ = 0, written_ = 0;   // that it holds; ever
  std::vector<run::SampleRecord> pending_;
  bool grows_ = true;
  int failed_ = 0;                                                      // errno
  std::map<std::pair<std::string, std::string>, std::uint32_t> known_;  // by name and target
  std::map<std::string, std::string> names_;                            // of targets that are called otherwise
  std::vector<Newest> newest_;
};

std::int64_t monotonic_ns();

}  // namespace stepscope::collect::telemetry
