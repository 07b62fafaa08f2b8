// Damaged files and hostile sizes: packed files that are cut, broken, wrongly named or bombs; files that change, are
// sparse, nest deeply or never close an event. (The numbers are those of the list of cases.)
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "read/chrome_trace/text_source.h"
#include "read/chrome_trace/trace_text_fixture.h"

using namespace stepscope;
using namespace stepscope::read;

namespace {

std::string packed_bomb(std::size_t bytes) {
  TraceText t;
  return formats::gzip(t.text() + std::string(bytes, ' '));
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

}  // namespace

TEST_CASE("34: a byte order mark is skipped") {
  TraceText t;
  t.head = "\xEF\xBB\xBF" + t.head;
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.slices.size() == kSlices);
}

TEST_CASE("40: a cut packed file gives the events before the cut") {
  const TraceText t;
  const std::string packed = formats::gzip(t.text());
  const Result<Trace> trace = read_bytes(packed.substr(0, packed.size() / 2));
  REQUIRE(trace);
  CHECK(trace->slices.size() > 5);
  CHECK(trace->slices.size() < kSlices);
  REQUIRE(trace->issues.size() == 3);
  CHECK(trace->issues[0].code == "cut_inside_event");
  CHECK(trace->issues[2].code == "gzip_cut");
  CHECK(trace->issues[2].severity == Severity::lost);
  CHECK(trace->issues[2].offset == trace->source.text_bytes);
  CHECK(trace->source.text_bytes < t.text().size());
}

TEST_CASE("41: a wrong checksum or length is said, and costs nothing") {
  const TraceText t;
  for (const std::size_t from_end : {8, 1}) {
    std::string packed = formats::gzip(t.text());
    packed[packed.size() - from_end] ^= 1;
    const Result<Trace> trace = read_bytes(packed);
    REQUIRE(trace);
    CHECK(issue_list(*trace) == "gzip_checksum repaired 1" + at(t.text().size()));
    CHECK(trace->slices.size() == kSlices);
  }
}

TEST_CASE("42, 44: members that follow each other are one text; what is no gzip behind them is counted") {
  const TraceText t;
  const std::string text = t.text(), whole = formats::gzip(text.substr(0, 3000)) + formats::gzip(text.substr(3000));
  Result<Trace> trace = read_bytes(whole);
  REQUIRE(trace);
  CHECK(issue_list(*trace) == "");
  CHECK(trace->slices.size() == kSlices);
  for (const std::string_view garbage : {"garbage", "\x1fno member"}) {
    trace = read_bytes(whole + std::string(garbage));
    REQUIRE(trace);
    CHECK(issue_list(*trace) == "gzip_trailing repaired " + std::to_string(garbage.size()) + at(text.size()));
    CHECK(trace->slices.size() == kSlices);
  }
  trace = read_bytes(whole + std::string(512, '\0'));
  REQUIRE(trace);
  CHECK(issue_list(*trace) == "");
}

TEST_CASE("43: packed or not is seen from the content, not the name") {
  const TraceText t;
  const TempFile plain(t.text(), "trace.json.gz"), packed(formats::gzip(t.text()), "trace.json");
  const Result<Trace> a = read_path(plain.path()), b = read_path(packed.path());
  REQUIRE(a);
  REQUIRE(b);
  CHECK_FALSE(a->source.compressed);
  CHECK(b->source.compressed);
  CHECK(first_difference(*a, *b) == "");
}

TEST_CASE("45: a packed file may not grow without limit, unless the caller says so") {
  const std::string bomb = packed_bomb(90 << 20);
  REQUIRE(bomb.size() < 1 << 20);
  const Result<Trace> refused = read_bytes(bomb);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::too_large);
  const std::uint64_t limit = std::max<std::uint64_t>(100 * bomb.size(), 64 << 20);
  CHECK(refused.error().message ==
        "the compressed text grows beyond the limit of " + std::to_string(limit >> 20) + " MiB");
  CHECK(refused.error().offset == limit);
  CHECK(refused.error().hint.find("STEPSCOPE_MAX_TEXT_MB") != std::string::npos);
  const Result<Trace> allowed = read_bytes(bomb, {1, false, 100 << 20, 0});
  REQUIRE(allowed);
  CHECK(allowed->slices.size() == kSlices);
  CHECK(issue_list(*allowed) == "");
  const Result<Trace> small = read_bytes(formats::gzip(TraceText().text()), {1, false, 1000, 0});
  REQUIRE_FALSE(small);
  CHECK(small.error().kind == ErrorKind::too_large);
}

TEST_CASE("37: nesting of 200,000 levels needs no stack") {
  const std::string open(200'000, '['), close(200'000, ']');
  TraceText t;
  t.events[kOp].insert(t.events[kOp].find("\"External"), "\"deep\": " + open + close + ", ");
  Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.slices.size() == kSlices);
  TraceText header;
  header.head = "{\"schemaVersion\": " + open + close + ", \"traceEvents\": [";
  trace = read_every_way(header.text());
  CHECK(trace.slices.size() == kSlices);
  TraceText broken;
  broken.events[kOp].insert(broken.events[kOp].find("\"External"), "\"deep\": " + open);
  trace = read_every_way(broken.text());
  CHECK(trace.slices.size() == kSlices - 1);
}

TEST_CASE("46: an event of more than 64 MiB is refused where it stands, in bounded memory") {
  TraceText t;
  t.events[kOp].insert(t.events[kOp].find("aten"), std::string(100 << 20, 'x'));
  const std::uint64_t before = peak_memory_bytes();
  const TempFile file(t.text());
  const std::uint64_t with_text = peak_memory_bytes();
  const Result<Trace> trace = read_path(file.path());
  REQUIRE_FALSE(trace);
  CHECK(trace.error().kind == ErrorKind::too_large);
  CHECK(trace.error().offset == t.offset(kOp));
  CHECK(peak_memory_bytes() - with_text < 400 << 20);
  CHECK(with_text >= before);
}

TEST_CASE("events that start inside each other do not take quadratic time") {
  std::string text = "[";
  for (int i = 0; i < 400'000; i++) text += "{\"ph\":[";
  for (const bool tolerant : {false, true}) {
    const Result<Trace> trace = read_bytes(text, {2, tolerant, 0, 64 << 10});
    REQUIRE(trace);
    CHECK(trace->slices.size() == 0);
    CHECK(trace->issues.size() > 0);
  }
}

TEST_CASE("many tracks and as many metadata events do not take quadratic time") {
  std::string text = "[";
  for (int i = 0; i < 100'000; i++) {
    const std::string n = std::to_string(i);
    text += R"({"ph":"X","cat":"c)" + n + R"(","name":"a","ts":1,"dur":1,"pid":1,"tid":)" + n + "},";
    text += R"({"ph":"M","name":"process_name","pid":1,"tid":)" + n + R"(,"args":{"name":"p)" + n + "\"}},";
  }
  const Result<Trace> trace = read_bytes(text, {2, false, 0, 0});
  REQUIRE(trace);
  CHECK(trace->tracks.size() == 100'000);
  CHECK(trace->strings[trace->tracks[5].process_name] == "p99999");
  CHECK(trace->categories.size() == 65'535);
}

TEST_CASE("47: a file that became shorter is an error, not a short trace") {
  const TraceText t;
  const TempFile file(t.text());
  const int fd = open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  const auto source = chrome_trace::plain_source(fd, t.text().size() + 5000, file.path(), 1000);
  source->start(0);
  chrome_trace::ChunkText chunk;
  Result<bool> more = true;
  while (more && *more) more = source->next(chunk);
  close(fd);
  REQUIRE_FALSE(more);
  CHECK(more.error().kind == ErrorKind::changed);
  CHECK(more.error().offset == t.text().size());
}

TEST_CASE("47: a file whose content is rewritten while it is read is an error; one that grows is read as it was") {
  TraceText t;
  std::string text = t.text();
  text.resize(text.size() + (8 << 20), ' ');
  for (const bool grows : {true, false}) {
    const TempFile file(text);
    std::atomic<bool> stop{false};
    std::thread writer([&] {  // every moment of the reading sees a change
      for (int i = 0; !stop; i++) {
        const int fd = open(file.path().c_str(), O_WRONLY | O_CLOEXEC | (grows ? O_APPEND : 0));
        if (write(fd, grows ? " " : "{", 1) != 1) stop = true;
        close(fd);
      }
    });
    const Result<Trace> trace = read_path(file.path(), {1, true, 0, 1000});
    stop = true;
    writer.join();
    if (grows) {
      REQUIRE(trace);
      CHECK(issue_list(*trace) == "grew info 1");
    } else {
      REQUIRE_FALSE(trace);
      CHECK(trace.error().kind == ErrorKind::changed);
    }
  }
}

TEST_CASE("48: a file of more than 4 GiB that was reserved and mostly never written opens at once") {
  const TraceText t;
  const TempFile file(t.text());
  REQUIRE(truncate(file.path().c_str(), off_t{5} << 30) == 0);
  const std::uint64_t before = peak_memory_bytes();
  const Result<Trace> trace = read_path(file.path());
  REQUIRE(trace);
  CHECK(issue_list(*trace) == "");
  CHECK(trace->source.file_bytes == std::uint64_t{5} << 30);
  CHECK(trace->slices.size() == kSlices);
  CHECK(peak_memory_bytes() - before < 100 << 20);
}

TEST_CASE("48: events behind 4 GiB of text are found at their place" * doctest::skip()) {  // 64-bit offsets; make soak
  TraceText t;
  const TempFile file(t.text().substr(0, t.offset(kOp)));
  const std::uint64_t far = (std::uint64_t{5} << 30) - 100;
  const int fd = open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  const std::string rest = t.text().substr(t.offset(kOp));
  REQUIRE(pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(far)) == static_cast<ssize_t>(rest.size()));
  close(fd);
  const Result<Trace> trace = read_path(file.path(), {2, false, 0, 0});
  REQUIRE(trace);
  CHECK(trace->slices.size() == kSlices);
  CHECK(issue_list(*trace) == "");
  CHECK(trace->source.text_bytes == far + rest.size());
  const std::uint64_t last_begin = far + t.offset(kEvents - 3) - t.offset(kOp);  // of the last pair, the last slice
  CHECK(trace->source.blocks.back().offset + trace->slices.place[kSlices - 1] == last_begin);
}

TEST_CASE("36: a folder and a pipe are refused without waiting for them") {
  const Result<Trace> folder = read_path("/tmp");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().kind == ErrorKind::unreadable);
  const TempFolder temporary;
  REQUIRE(mkfifo((temporary / "pipe").c_str(), 0600) == 0);
  const Result<Trace> pipe = read_path(temporary / "pipe");
  REQUIRE_FALSE(pipe);
  CHECK(pipe.error().kind == ErrorKind::unreadable);
}
