// The hot half of the Decoder: what runs for every member of every event, inline in the walks.
#pragma once

#include <string_view>

#include "formats/number_text.h"
#include "read/chrome_trace/decoder.h"

namespace stepscope::read::chrome_trace {

constexpr std::uint64_t word(std::string_view text) {  // up to 8 characters as formats::load8 sees them
  std::uint64_t v = 0;
  for (std::size_t i = text.size(); i-- > 0;) v = v << 8 | static_cast<unsigned char>(text[i]);
  return v;
}

// A key of up to 8 characters as one number.
inline std::uint64_t key_word(const char* key, std::size_t size) {
  const std::uint64_t v = formats::load8(key);
  return size < 8 ? v & ((std::uint64_t{1} << (8 * size)) - 1) : v;
}

inline bool starts_number(char c) { return formats::is_digit(c) || c == '-'; }

inline LocalId Decoder::intern(std::string_view raw) {
  const std::size_t known = strings_.size();
  const auto id = static_cast<LocalId>(strings_.intern(raw));
  if (id == known) batch_->new_strings.emplace_back(id, strings_[static_cast<StringId>(id)]);
  return id;
}

// A string without its quotes; null is nothing; everything else as its raw text, arrays on one line.
inline LocalId Decoder::intern_value(const char* begin, const char* end) {
  if (*begin == '"') return intern({begin + 1, static_cast<std::size_t>(end - begin - 2)});
  if (*begin == 'n' && end - begin == 4) return kNoId;
  const std::string_view raw(begin, static_cast<std::size_t>(end - begin));
  const bool indented = (*begin == '[' || *begin == '{') && raw.find('\n') != raw.npos;
  return indented ? intern_indented(begin, end) : intern(raw);
}

inline std::uint16_t Decoder::intern_category(std::string_view raw) {
  return raw == last_category_text_ ? last_category_ : find_category(raw);  // writers group events by category
}

// The same few processes and threads come again and again: their text is compared before it is parsed.
inline RawId Decoder::raw_id(const char* begin, const char* end, LastId& last) {
  const auto size = static_cast<std::size_t>(end - begin);
  const std::uint64_t text = size <= 8 ? key_word(begin, size) : 0;
  if (size <= 8 && size == last.size && text == last.text) return last.id;
  std::int64_t value = 0;
  if (!formats::parse_int(begin, end, value)) return {kAbsent, intern_value(begin, end)};
  if (size <= 8) last = {text, size, {value, kNoId}};
  return {value, kNoId};
}

inline bool Decoder::integer(const char* begin, const char* end, std::int64_t& out) {
  return formats::parse_int(begin, end, out) || integer_of_another_kind(begin, end, out);
}

inline bool Decoder::microseconds(const char* begin, const char* end, std::int64_t& ns, bool& given) {
  const bool quoted = *begin == '"';
  given = formats::parse_us_as_ns(begin + quoted, end - quoted, ns);
  return given || !starts_number(*begin);
}

inline void Decoder::begin_event(const char* at) {
  Event& e = event_;
  e.begin = at;
  e.args_begin = e.args_end = nullptr;
  e.id = kAbsent;
  e.name = e.id_text = kNoId;
  e.category = 0xffff;
  e.phase = 0;
  e.has_time = e.has_dur = e.has_name = false;
  e.process = e.thread = RawId{};
  e.numbers = e.reals = e.texts = e.triples = e.members = 0;
  batch_->events++;
}

inline bool Decoder::member(const char* key, std::size_t size, const char* begin, const char* end) {
  if (size > 4 || size < 2) return true;
  Event& e = event_;
  const auto once = [&](std::uint32_t bit) {
    if (e.members >> bit & 1) note(Defect::duplicate_key);
    e.members |= 1u << bit;
  };
  switch (key_word(key, size)) {
    case word("ph"):
      once(0);
      e.phase = *begin == '"' && end - begin == 3 ? begin[1] : '?';
      return true;
    case word("ts"): once(1); return microseconds(begin, end, e.time_ns, e.has_time);
    case word("dur"): once(2); return microseconds(begin, end, e.dur_ns, e.has_dur);
    case word("name"):
      once(3);
      e.name = intern_value(begin, end);
      e.has_name = e.name != kNoId;
      return true;
    case word("cat"):
      once(4);
      if (*begin == '"') e.category = intern_category({begin + 1, static_cast<std::size_t>(end - begin - 2)});
      return true;
    case word("pid"):
      once(5);
      e.process = raw_id(begin, end, last_process_);
      return true;
    case word("tid"):
      once(6);
      e.thread = raw_id(begin, end, last_thread_);
      return true;
    case word("id"):
    case word("id2"):
      once(7);
      if (!formats::parse_int(begin, end, e.id)) {
        e.id = kAbsent;
        e.id_text = intern_value(begin, end);
      }
      return true;
    default: return true;
  }
}

inline bool Decoder::argument(const char* key, std::size_t size, const char* begin, const char* end) {
  const Field field = kArguments.find(key, size);
  Event& e = event_;
  switch (field.type) {
    case FieldType::none: return true;
    case FieldType::number: {
      if (e.numbers >> field.index & 1) note(Defect::duplicate_key);
      e.numbers |= 1u << field.index;
      return integer(begin, end, e.number[field.index]);
    }
    default: return rare_argument(field, begin, end);
  }
}

}  // namespace stepscope::read::chrome_trace
