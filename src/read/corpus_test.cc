// Every real trace of the corpus (STEPSCOPE_CORPUS, by default ../shared/data) opens, gives the same model on the
// strict and the tolerant path, and has as many events as simdjson's DOM counts.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <simdjson.h>

#include <algorithm>

#include "base/corpus_fixture.h"
#include "formats/gzip_stream.h"
#include "read/chrome_trace/trace_text_fixture.h"
#include "session/inputs.h"

using namespace stepscope;

namespace {

using namespace corpus_fixture;

constexpr std::uintmax_t kMostBytes = 8 << 20;  // of one file; make soak reads the larger ones too

std::string whole_text(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text(fs::file_size(path), '\0');
  REQUIRE(pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  if (text.starts_with("\x1f\x8b")) {
    formats::GzipStream stream(fd, text.size());
    std::string unpacked, piece(1 << 20, '\0');
    for (std::size_t got = piece.size(); got == piece.size();) {
      got = stream.read(piece.data(), piece.size());
      unpacked.append(piece, 0, got);
    }
    text = std::move(unpacked);
  }
  close(fd);
  return text;
}

// -1: simdjson does not take the text (it is damaged).
std::int64_t count_events(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array events;
  if (parser.parse(text).get(root) != simdjson::SUCCESS) return -1;
  if (root.is_array() ? root.get(events) : root["traceEvents"].get(events)) return -1;
  return static_cast<std::int64_t>(std::distance(events.begin(), events.end()));
}

void check_file(const std::string& path) {
  CAPTURE(path);
  const Result<Trace> strict = read::read_path(path, {2, false, 0, 0});
  REQUIRE_MESSAGE(strict, (strict ? "" : to_text(strict.error())));
  for (const auto& [tolerant, chunk] : {std::pair(true, 0), std::pair(false, 100'000)}) {
    const Result<Trace> other = read::read_path(path, {1, tolerant, 0, static_cast<std::size_t>(chunk)});
    REQUIRE(other);
    CHECK(first_difference(*strict, *other) == "");
  }
  const std::int64_t counted = count_events(whole_text(path));
  if (counted >= 0) CHECK(static_cast<std::int64_t>(strict->source.events) == counted);
  if (counted < 0) CHECK_FALSE(strict->issues.empty());
}

void check_corpus(std::uintmax_t least, std::uintmax_t most) {
  if (!has_corpus()) return;
  const std::string folder = corpus().string();
  std::vector<Issue> issues;
  const auto files = session::find_inputs(std::span(&folder, 1), issues);
  REQUIRE(files);
  std::size_t checked = 0;
  for (const session::InputFile& file : *files) {
    const std::uintmax_t bytes = fs::file_size(file.path) * (file.path.ends_with(".gz") ? 12 : 1);
    if (file.reader->name != "chrome_trace" || bytes < least || bytes >= most) continue;
    check_file(file.path);
    checked++;
  }
  MESSAGE(checked, " traces of the corpus");
  CHECK(checked > 0);
}

}  // namespace

TEST_CASE("real traces open, and all ways of reading them agree") { check_corpus(0, kMostBytes); }

TEST_CASE("large real traces open, and all ways of reading them agree" * doctest::skip()) {
  check_corpus(kMostBytes, UINTMAX_MAX);
}
