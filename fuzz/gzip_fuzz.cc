// A packed file of anything: never a crash or a hang, the same text and damage whatever the size of the pieces that are
// asked for, and never more than the limit that the caller sets.
#include <string>

#include "formats/gzip_stream.h"
#include "trace_input.h"

using namespace stepscope;

namespace {

constexpr std::size_t kLimit = 1 << 20;

struct Unpacked {
  std::string text;
  formats::GzipStream::Damage damage;
};

Unpacked unpack(int fd, std::size_t file_bytes, std::size_t step) {
  Unpacked out;
  formats::GzipStream stream(fd, file_bytes);
  std::string piece(step, '\0');
  while (out.text.size() < kLimit) {
    const std::size_t got = stream.read(piece.data(), step);
    fuzz::must(got <= step, "no more than asked for");
    out.text.append(piece, 0, got);
    if (got < step) break;
  }
  out.damage = stream.damage();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  const Unpacked whole = unpack(file.fd(), size, kLimit);
  const Unpacked pieces = unpack(file.fd(), size, 1000);
  if (whole.text.size() >= kLimit) return 0;
  // Broken data may give some bytes more or fewer before it is noticed.
  const bool broken = whole.damage.bad_data && pieces.damage.bad_data;
  const bool one_starts = whole.text.starts_with(pieces.text) || pieces.text.starts_with(whole.text);
  fuzz::must(broken ? one_starts : whole.text == pieces.text, "one text");
  fuzz::must(whole.damage.cut == pieces.damage.cut && whole.damage.bad_data == pieces.damage.bad_data &&
                 whole.damage.bad_checksum == pieces.damage.bad_checksum &&
                 whole.damage.trailing == pieces.damage.trailing,
             "one damage");
  fuzz::must(whole.damage.trailing <= size, "no more behind the end than there is");
  return 0;
}
