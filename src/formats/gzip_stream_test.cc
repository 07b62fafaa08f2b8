#include "formats/gzip_stream.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "formats/gzip_text.h"

using stepscope::formats::gzip;
using stepscope::formats::GzipStream;

namespace {

struct Unpacked {
  std::string text;
  GzipStream::Damage damage;
};

// Reads `bytes` in pieces of `step`.
Unpacked unpack(std::string_view bytes, std::size_t step) {
  const int fd = memfd_create("gzip", MFD_CLOEXEC);
  REQUIRE(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  GzipStream stream(fd, bytes.size());
  Unpacked result;
  std::string piece(step, '\0');
  while (true) {
    const std::size_t got = stream.read(piece.data(), step);
    result.text.append(piece, 0, got);
    if (got < step) break;
  }
  result.damage = stream.damage();
  close(fd);
  return result;
}

std::string sample() {
  std::string text;
  for (int i = 0; i < 5000; i++) text += std::to_string(i * 7919) + ",";
  return text;
}

}  // namespace

TEST_CASE("text comes out whole, whatever the size of the pieces") {
  const std::string text = sample(), packed = gzip(text);
  for (const std::size_t step : {1, 13, 4096, 1 << 20}) {
    const Unpacked out = unpack(packed, step);
    CHECK(out.text == text);
    CHECK_FALSE((out.damage.cut || out.damage.bad_checksum || out.damage.bad_data || out.damage.trailing > 0));
  }
}

TEST_CASE("every cut gives a beginning of the text and says that it was cut") {
  const std::string text = sample(), packed = gzip(text);
  for (std::size_t size = 1; size < packed.size(); size += 97) {
    const Unpacked out = unpack(packed.substr(0, size), 4096);
    CHECK(text.starts_with(out.text));
    CHECK(out.damage.cut);
    CHECK_FALSE(out.damage.bad_data);
  }
}

TEST_CASE("broken data gives what was before it") {
  std::string packed = gzip(sample());
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 64; i++) packed[i] = '\xff';
  const Unpacked out = unpack(packed, 4096);
  CHECK((out.damage.bad_data || out.damage.bad_checksum));
  CHECK(out.text.size() > 1000);
}

TEST_CASE("members follow each other, empty ones too; zeros and other bytes behind them are no text") {
  const std::string text = sample();
  const std::string packed = gzip(text) + gzip("") + gzip("end");
  CHECK(unpack(packed, 1000).text == text + "end");
  CHECK(unpack(packed + std::string(100, '\0'), 1000).damage.trailing == 0);
  for (const std::string_view garbage : {"x", "garbage", "\x1f", "\x1f\x8b", "\x1fgarbage", "\x1f\x8bgarbage"}) {
    const Unpacked out = unpack(packed + std::string(garbage), 1000);
    CHECK(out.text == text + "end");
    CHECK(out.damage.trailing == garbage.size());
    CHECK_FALSE((out.damage.bad_data || out.damage.cut));
  }
}

TEST_CASE("a file that is no gzip gives nothing, and says so") {
  for (const std::string_view bytes :
       {"plain text that is long enough for a header", "\x1f\x8b\x08 and then nonsense"}) {
    const Unpacked out = unpack(bytes, 1000);
    CHECK((out.damage.bad_data || out.damage.cut));
  }
}
