#include "write/perfetto/source_text.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>

#include "formats/file_text.h"
#include "formats/json_text.h"

namespace stepscope::write::perfetto {
namespace {

bool is_json(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  return parser.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

}  // namespace

SourceText::SourceText(const Trace& trace) : trace_(trace) {
  if (trace.source.format != "chrome_trace") {
    missing_ = "only JSON traces have arguments as text";
  } else if (!trace.source.parts.empty()) {
    missing_ = "the recording lies in several files";
  } else if (trace.source.text_bytes > kMostText) {
    missing_ = "the file is too large to be read twice";
  } else if (auto file = formats::read_text(trace.source.path, kMostText);
             file && file->text.size() == trace.source.text_bytes) {
    text_ = std::move(file->text);
  } else {
    missing_ = "the file is no longer as it was read";
  }
}

std::string_view SourceText::arguments(SliceId slice) const {
  const auto& blocks = trace_.source.blocks;
  const auto after =
      std::upper_bound(blocks.begin(), blocks.end(), static_cast<std::uint32_t>(slice),
                       [](std::uint32_t row, const PlaceBlock& block) { return row < block.first_slice; });
  if (after == blocks.begin()) return {};
  const std::uint64_t place = std::prev(after)->offset + trace_.slices.place[slice];
  if (place >= text_.size() || text_[place] != '{') return {};
  for (const auto& member : formats::members(std::string_view(text_).substr(place))) {
    if (member.key == "args" && member.value.starts_with('{') && member.value.size() > 2 && is_json(member.value)) {
      return member.value;
    }
  }
  return {};
}

}  // namespace stepscope::write::perfetto
