// simdjson's stage 1 finds every structural character ({ } [ ] : , and the first byte of each scalar), checks UTF-8 and
// refuses raw control bytes in strings. What is left is a walk over that index: a key's end is the byte before the next
// structural, a scalar's end likewise. Nothing is decoded that the decoder does not ask for.
#include "read/chrome_trace/strict_walk.h"

#include <simdjson.h>

#include <cstring>

#include "formats/number_text.h"
#include "read/chrome_trace/decoder_members.h"

namespace stepscope::read::chrome_trace {

namespace sj = simdjson;

namespace {
#ifdef STEPSCOPE_SIMDJSON_1  // Ubuntu 22.04
const sj::implementation& implementation() { return *sj::active_implementation; }
#else
const sj::implementation& implementation() { return *sj::get_active_implementation(); }
#endif
}  // namespace

struct StrictWalk::Index {
  std::unique_ptr<sj::internal::dom_parser_implementation> parser;
  std::size_t capacity = 0;

  bool build(const char* text, std::size_t size) {
    if (capacity < size) {
      capacity = size + size / 4;
      parser.reset();
      if (implementation().create_dom_parser_implementation(capacity, 16, parser) != sj::SUCCESS) {
        capacity = 0;
        return false;
      }
    }
    return parser->stage1(reinterpret_cast<const std::uint8_t*>(text), size, sj::stage1_mode::regular) == sj::SUCCESS;
  }
  const std::uint32_t* begin() const { return parser->structural_indexes.get(); }
  const std::uint32_t* end() const { return begin() + parser->n_structural_indexes; }
};

StrictWalk::StrictWalk() : index_(std::make_unique<Index>()) {}
StrictWalk::~StrictWalk() = default;

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

const char* trim(const char* p) {
  while (is_space(p[-1])) p--;
  return p;
}

// A cheap look at the start of a scalar: NaN, Infinity, N/A and barewords are not JSON.
bool plausible_scalar(const char* p) {
  const char c = *p;
  if (c == '"' || c == '-' || formats::is_digit(c)) [[likely]]
    return true;
  return (c == 't' && std::memcmp(p, "true", 4) == 0) || (c == 'f' && std::memcmp(p, "false", 5) == 0) ||
         (c == 'n' && std::memcmp(p, "null", 4) == 0);
}

// The cursor over the structural index. Every step that could pass the end says false instead.
struct Cursor {
  const char* text;
  const std::uint32_t* at;
  const std::uint32_t* end;

  char look() const { return text[*at]; }
  const char* here() const { return text + *at; }
  std::size_t left() const { return static_cast<std::size_t>(end - at); }

  // At '{' or '[': moves behind the matching bracket.
  bool skip_nested() {
    int depth = 0;
    do {
      if (at >= end) return false;
      const char c = static_cast<char>(text[*at++] | 32);  // '[' → '{', ']' → '}'
      depth += (c == '{') - (c == '}');
    } while (depth > 0);
    return true;
  }

  // At a key: reads `"key" :` and stands on the value's first structural afterwards.
  bool key(const char*& begin, std::size_t& size) {
    if (left() < 4) return false;
    begin = text + at[0] + 1;
    const char* colon = text + at[1];
    if (begin[-1] != '"' || *colon != ':') return false;
    size = static_cast<std::size_t>(trim(colon) - begin) - 1;
    at += 2;
    return true;
  }

  // Reads the value: [begin, finish) is its raw text. Stands on the structural behind it afterwards.
  bool value(const char*& begin, const char*& finish) {
    begin = here();
    if (*begin == '{' || *begin == '[') {
      if (!skip_nested()) return false;
      finish = text + at[-1] + 1;
      return true;
    }
    if (!plausible_scalar(begin)) return false;
    at++;
    if (at >= end) return false;
    finish = trim(here());
    return true;
  }

  // Behind a member: ',' goes on, '}' ends the object (`done`).
  bool next_member(bool& done) {
    if (at >= end) return false;
    const char c = text[*at++];
    done = c == '}';
    return done || c == ',';
  }
};

// At the '{' of "args".
bool walk_arguments(Decoder& decoder, Cursor& cursor) {
  const char* open = cursor.here();
  cursor.at++;
  bool done = cursor.left() > 0 && cursor.look() == '}';
  if (done) cursor.at++;
  while (!done) {
    const char *key, *begin, *finish;
    std::size_t size;
    if (!cursor.key(key, size) || !cursor.value(begin, finish)) return false;
    if (!decoder.argument(key, size, begin, finish) || !cursor.next_member(done)) return false;
  }
  decoder.arguments_text(open, cursor.text + cursor.at[-1] + 1);
  return true;
}

// At the '{' of an event.
bool walk_event(Decoder& decoder, Cursor& cursor) {
  decoder.begin_event(cursor.here());
  cursor.at++;
  bool done = cursor.left() > 0 && cursor.look() == '}';
  if (done) cursor.at++;
  while (!done) {
    const char *key, *begin, *finish;
    std::size_t size;
    if (!cursor.key(key, size)) return false;
    if (size == 4 && std::memcmp(key, "args", 4) == 0 && cursor.look() == '{') {
      if (!walk_arguments(decoder, cursor)) return false;
    } else if (!cursor.value(begin, finish) || !decoder.member(key, size, begin, finish)) {
      return false;
    }
    if (!cursor.next_member(done)) return false;
  }
  decoder.end_event(cursor.text + cursor.at[-1] + 1);
  return true;
}

}  // namespace

bool StrictWalk::walk(Decoder& decoder, const char* text, std::size_t size, WalkEnd& end) {
  end = {};
  if (!index_->build(text, size)) return false;
  Cursor cursor{text, index_->begin(), index_->end()};
  while (cursor.left() > 0) {
    if (cursor.look() == ']') {
      // "],{" or "],[": a stray bracket, or a second list glued to the first
      if (cursor.left() > 2 && text[cursor.at[1]] == ',' && (text[cursor.at[2]] | 32) == '{') return false;
      end = {true, *cursor.at};
      return true;
    }
    if (cursor.look() != '{' || !walk_event(decoder, cursor)) return false;
    if (cursor.left() == 0) return false;  // no comma: the chunk ends inside the array
    const char c = cursor.look();
    if (c == ',') {
      cursor.at++;
      // "},]": a trailing comma is not valid JSON
      if (cursor.left() > 0 && cursor.look() == ']') return false;
    } else if (c != ']') {
      return false;
    }
  }
  return true;
}

}  // namespace stepscope::read::chrome_trace
