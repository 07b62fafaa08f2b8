#include "read/file_text_trace.h"

namespace stepscope::read {

void note_gzip_damage(Trace& trace, const formats::GzipStream::Damage& damage) {
  const auto add = [&](const char* code, Severity severity, const char* sentence, std::uint64_t count) {
    add_issue(trace.issues, {code, severity, sentence, "Copy or record the file again", count, trace.source.path,
                             trace.source.text_bytes, std::nullopt});
  };
  if (damage.cut) add("gzip_cut", Severity::lost, "the compressed file ends too early; everything before was read", 1);
  if (damage.bad_data)
    add("gzip_broken", Severity::lost, "the compressed data is broken; everything before was read", 1);
  if (damage.bad_checksum) add("gzip_checksum", Severity::repaired, "the gzip checksum does not fit the content", 1);
  if (damage.trailing > 0) {
    add("gzip_trailing", Severity::repaired, "bytes behind the compressed data were not read", damage.trailing);
  }
}

Trace trace_of(const formats::FileText& file, const std::string& path, std::string_view format,
               std::string_view writer) {
  Trace trace;
  trace.source.path = path;
  trace.source.format = format;
  trace.source.writer = writer;
  trace.source.compressed = file.compressed;
  trace.source.file_bytes = file.file_bytes;
  trace.source.text_bytes = file.text.size();
  note_gzip_damage(trace, file.damage);
  return trace;
}

}  // namespace stepscope::read
