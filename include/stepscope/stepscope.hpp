// stepscope.hpp: the C++ way in. A thin owner around the C ABI, header-only, so that it works with every compiler and
// standard library that can link libstepscope.so.
//
//   auto run = stepscope::open({"trace_dir"});
//   std::cout << run.report({"steps", "kernels"});        // JSON, see docs/report-json.md
//   stepscope::TableStream kernels = run.table("device_work");  // Arrow record batches
//
// Errors are thrown as stepscope::OpenError: here, at the outer border, exceptions are what C++ callers expect.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "stepscope/stepscope.h"

namespace stepscope {

// what() is the JSON text {"kind", "message", "file", "offset", "hint"}.
class OpenError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  bool use_cache = true;
  unsigned threads = 0;    // 0: all cores this process may use
  std::string rules_path;  // the user's class rules; empty: none
  std::string peaks_path, flop_rules_path;
};

// Owns one Arrow stream; movable. Empty only after release().
class TableStream {
 public:
  explicit TableStream(ArrowArrayStream stream) : stream_(stream) {}
  TableStream(TableStream&& other) noexcept : stream_(std::exchange(other.stream_, {})) {}
  TableStream& operator=(TableStream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~TableStream() {
    if (stream_.release != nullptr) stream_.release(&stream_);
  }
  ArrowArrayStream* get() { return &stream_; }
  // Hands the stream to the caller, who releases it.
  ArrowArrayStream release() { return std::exchange(stream_, {}); }

 private:
  ArrowArrayStream stream_{};
};

namespace detail {
inline std::string take(char* text, char* error) {
  const std::unique_ptr<char, void (*)(char*)> owned_text(text, stepscope_free_text);
  const std::unique_ptr<char, void (*)(char*)> owned_error(error, stepscope_free_text);
  if (text == nullptr) throw OpenError(error != nullptr ? error : "unknown error");
  return text;
}

inline std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  for (const std::string& text : texts) all.push_back(text.c_str());
  return all;
}
}  // namespace detail

// What was opened together: one trace per rank. May be used from many threads at once.
class OpenedRun {
 public:
  explicit OpenedRun(stepscope_run* run) : run_(run, stepscope_close) {}

  // JSON of the named answers; of all when empty.
  std::string report(const std::vector<std::string>& names = {}) const {
    char* error = nullptr;
    const auto list = detail::pointers(names);
    char* text = stepscope_report(run_.get(), list.data(), list.size(), &error);
    return detail::take(text, error);
  }
  // JSON of what to change first.
  std::string advise() const {
    char* error = nullptr;
    char* text = stepscope_advise(run_.get(), &error);
    return detail::take(text, error);
  }
  // JSON list of the tables and their columns.
  std::string tables(bool with_answers = false) const {
    char* error = nullptr;
    char* text = stepscope_tables(run_.get(), with_answers ? 1 : 0, &error);
    return detail::take(text, error);
  }
  // "slices", "device_work", "answers.kernels.by_name" …
  TableStream table(const std::string& name) const {
    char* error = nullptr;
    ArrowArrayStream stream{};
    if (stepscope_table(run_.get(), name.c_str(), &stream, &error) != 0) detail::take(nullptr, error);
    return TableStream(stream);
  }
  // JSON text of the arguments of one slice.
  std::string slice_text(std::int64_t rank, std::uint32_t slice) const {
    char* error = nullptr;
    char* text = stepscope_slice_text(run_.get(), rank, slice, &error);
    return detail::take(text, error);
  }
  stepscope_run* get() const { return run_.get(); }

 private:
  std::unique_ptr<stepscope_run, void (*)(stepscope_run*)> run_;
};

// Opens files, folders and glob patterns as one run.
inline OpenedRun open(const std::vector<std::string>& paths, const Options& options = {}) {
  stepscope_options plain{};
  plain.struct_size = sizeof(plain);
  plain.use_cache = options.use_cache ? 1 : 0;
  plain.threads = options.threads;
  plain.rules_path = options.rules_path.c_str();
  plain.peaks_path = options.peaks_path.c_str();
  plain.flop_rules_path = options.flop_rules_path.c_str();
  char* error = nullptr;
  const auto list = detail::pointers(paths);
  stepscope_run* run = stepscope_open(list.data(), list.size(), &plain, &error);
  if (run == nullptr) detail::take(nullptr, error);
  return OpenedRun(run);
}

}  // namespace stepscope
