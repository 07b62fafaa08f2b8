// What readers of text files say of the file itself.
#pragma once

#include <string>
#include <string_view>

#include "formats/file_text.h"
#include "formats/gzip_stream.h"
#include "model/trace.h"

namespace stepscope::read {

// What was wrong with the compression of the trace's file, as issues; set source.text_bytes first.
void note_gzip_damage(Trace& trace, const formats::GzipStream::Damage& damage);

// A trace without events yet whose source is that file; damage of its compression is noted.
Trace trace_of(const formats::FileText& file, const std::string& path, std::string_view format,
               std::string_view writer);

}  // namespace stepscope::read
