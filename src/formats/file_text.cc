#include "formats/file_text.h"

#include "formats/text_file.h"

namespace stepscope::formats {
namespace {

// Parsers want some bytes behind the text: without room for them, the text would be copied, and stand twice in memory.
constexpr std::size_t kRoomBehind = 256;

}  // namespace

Result<FileText> read_text(const std::string& path, std::uint64_t max_bytes) {
  Result<TextFile> source = TextFile::open(path, max_bytes);
  if (!source) return fail(source.error());
  FileText file;
  file.compressed = source->compressed();
  file.file_bytes = source->file_bytes();
  // A plain file is as long as it says: one piece, and one byte more to see its end.
  const std::size_t piece = file.compressed ? std::size_t{1} << 20 : static_cast<std::size_t>(file.file_bytes) + 1;
  if (!file.compressed) file.text.reserve(piece + kRoomBehind);
  for (std::size_t size = 0;;) {
    file.text.resize(size + piece);
    const Result<std::size_t> got = source->read(file.text.data() + size, piece);
    if (!got) return fail(got.error());
    size += *got;
    if (*got == piece) continue;
    file.text.resize(size);
    break;
  }
  file.damage = source->damage();
  return file;
}

}  // namespace stepscope::formats
