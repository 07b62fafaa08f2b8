#include "capi/arrow_text.h"

#include <algorithm>
#include <unordered_map>

#include "report/utf8.h"

namespace stepscope::capi {
namespace {

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

std::vector<bool> codes_in_use(const tables::Codes& codes, const Trace& trace, std::size_t rows) {
  std::vector<bool> used(codes.count(trace), false);
  for (std::size_t row = 0; row < rows; row++) {
    const std::uint32_t code = codes.code(trace, row);
    if (code < used.size()) used[code] = true;
  }
  return used;
}

}  // namespace

void Texts::add(std::string_view text) {
  if (is_ascii(text)) {
    bytes_ += text;
  } else {
    bytes_ += report::valid_utf8(text);
  }
  ends_.push_back(static_cast<std::int64_t>(bytes_.size()));
}

ColumnDictionary make_dictionary(const tables::Codes& codes, std::size_t (*rows)(const Trace&),
                                 std::span<const Trace> traces) {
  ColumnDictionary dictionary;
  auto texts = std::make_shared<Texts>();
  std::unordered_map<std::string_view, std::int32_t> known;  // views into the traces, which outlive this call
  for (const Trace& trace : traces) {
    const std::vector<bool> used = codes_in_use(codes, trace, rows(trace));
    std::vector<std::int32_t>& index = dictionary.index.emplace_back(used.size(), -1);
    for (std::size_t code = 0; code < used.size(); code++) {
      if (!used[code]) continue;
      const std::string_view text = codes.text(trace, static_cast<std::uint32_t>(code));
      const auto [place, fresh] = known.try_emplace(text, static_cast<std::int32_t>(texts->size()));
      if (fresh) texts->add(text);
      index[code] = place->second;
    }
  }
  dictionary.texts = std::move(texts);
  return dictionary;
}

ArrowArray text_array(std::shared_ptr<const Texts> texts, std::int64_t null_count, std::vector<std::uint8_t> validity) {
  ArrayParts parts;
  parts.length = static_cast<std::int64_t>(texts->size());
  parts.null_count = null_count;
  const void* valid = null_count == 0 ? nullptr : keep_vector(std::move(validity), parts.keep);
  parts.buffers = {valid, texts->ends(), texts->bytes()};
  parts.keep.push_back(std::move(texts));
  return make_array(std::move(parts));
}

}  // namespace stepscope::capi
