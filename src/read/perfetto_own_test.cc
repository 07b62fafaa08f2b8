// Perfetto traces of ours: damaged ones, how they are recognized, the text of their events. That whole ones come back
// as they were is tested in write/perfetto_test.cc.
#include <doctest/doctest.h>

#include "base/whole_file.h"
#include "derive/derive.h"
#include "formats/gzip_text.h"
#include "read/perfetto_fixture.h"
#include "write/write_fixture.h"

namespace stepscope::read {
namespace {

std::string own_file() {
  const TempFolder folder;
  const Run run = corpus_fixture::opened(write::trace("tiny_train.json"));
  REQUIRE(write::writer("perfetto").write(run, folder / "own.pftrace", {}));
  return whole_file(folder / "own.pftrace");
}

void check_opens(const std::string& bytes) {
  auto traces = read_bytes(bytes);
  if (!traces) {
    CHECK(traces.error().kind == ErrorKind::malformed);
    return;
  }
  REQUIRE_FALSE(traces->empty());
  for (Trace& trace : *traces) REQUIRE(derive::derive(trace, {}));
}

}  // namespace

TEST_CASE("perfetto: a file of ours opens wherever it is cut, and tells it") {
  const std::string whole = own_file();
  std::size_t slices = 0;
  for (std::size_t size = 1; size <= whole.size(); size += size < 300 ? 1 : 97) {
    CAPTURE(size);
    const auto traces = read_bytes(whole.substr(0, size));
    if (!traces) {
      CHECK_EQ(traces.error().kind, ErrorKind::malformed);
      continue;
    }
    const Trace& trace = traces->front();
    CHECK_GE(trace.slices.size(), slices);
    slices = trace.slices.size();
    CHECK_FALSE(issue(trace, "unknown_text"));
  }
  const auto traces = read_bytes(whole.substr(0, whole.size() - 1));
  REQUIRE(traces);
  CHECK(issue(traces->front(), "cut_inside_packet"));
  CHECK_GT(slices, 10);
}

TEST_CASE("perfetto: a compressed file that is cut gives what could be unpacked") {
  const std::string packed = formats::gzip(own_file());
  const auto whole = read_bytes(packed), cut = read_bytes(packed.substr(0, packed.size() / 2));
  REQUIRE(whole);
  REQUIRE(cut);
  CHECK(whole->front().source.compressed);
  CHECK_FALSE(issue(whole->front(), "gzip_cut"));
  CHECK(issue(cut->front(), "gzip_cut"));
  CHECK_GT(whole->front().slices.size(), cut->front().slices.size());
}

TEST_CASE("perfetto: damaged bytes anywhere neither crash nor hang") {
  const std::string whole = own_file();
  for (std::size_t at = 0; at < whole.size(); at += 31) {
    for (const char byte : {'\0', '\xff', static_cast<char>(whole[at] ^ 0x08)}) {
      std::string damaged = whole;
      damaged[at] = byte;
      CAPTURE(at);
      check_opens(damaged);
    }
  }
}

TEST_CASE("perfetto: bytes that are no trace are not taken for one") {
  CHECK(perfetto().recognizes(own_file()));
  CHECK(perfetto().recognizes(own_file().substr(0, 40)));
  CHECK_FALSE(perfetto().recognizes(""));
  CHECK_FALSE(perfetto().recognizes("\n"));
  CHECK_FALSE(perfetto().recognizes("\n{\"traceEvents\": []}"));
  CHECK_FALSE(perfetto().recognizes("\nplain words of text, one after the other"));
  CHECK_FALSE(perfetto().recognizes("\n\n\n\n"));
  CHECK_FALSE(
      perfetto().recognizes("\x0a\x0a\x08"
                            "10.0.0.4\x04\x12\x02"
                            "ab"));  // a Chakra file
  CHECK_FALSE(perfetto().recognizes(std::string(100, '\0')));
  CHECK_FALSE(perfetto().recognizes("\x80\x04\x95 pickle"));
}

TEST_CASE("perfetto: the arguments of a slice are there as they were recorded, else as columns") {
  const TempFolder folder;
  const std::string source = folder / "t.json";
  std::filesystem::copy_file(write::trace("tiny_train.json"), source);
  const Run run = corpus_fixture::opened(source);
  const std::vector<SliceId> slices{run.traces[0].device.slice[0], static_cast<SliceId>(0)};
  const auto recorded = session::slice_texts(run.traces[0], slices);
  REQUIRE(recorded);
  const auto texts = [&] {
    REQUIRE(write::writer("perfetto").write(run, folder / "own.pftrace", {}));
    const auto found = session::slice_texts(corpus_fixture::opened(folder / "own.pftrace").traces[0], slices);
    REQUIRE(found);
    return *found;
  };
  const std::string kernel = (*recorded)[0];
  const std::string args = kernel.substr(kernel.find("\"args\": ") + 8);
  REQUIRE_GT(args.size(), 20);
  CHECK(texts()[0].ends_with(args));
  std::filesystem::remove(source);
  CHECK_NE(texts()[0].find("\"device\": {\"device\": 0, "), std::string::npos);
  CHECK(texts()[1].starts_with("{\"name\": \"" + std::string(run.traces[0].name(slices[1]))));
}

}  // namespace stepscope::read
