// Base64 in pieces of any size, up to the character that ends it.
#include "formats/base64.h"

#include <doctest/doctest.h>

#include <string>

namespace stepscope::formats {
namespace {

std::string decoded(std::string_view text, std::size_t piece, bool& ended) {
  Base64 base64;
  std::string all;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    std::string bytes(part.size(), '\0');
    bytes.resize(base64.decode(part, bytes.data()));
    all += bytes;
  }
  ended = base64.ended();
  return all;
}

}  // namespace

TEST_CASE("base64: the same in pieces of any size") {
  for (const std::size_t piece : {1u, 2u, 3u, 4u, 5u, 100u}) {
    CAPTURE(piece);
    bool ended = true;
    CHECK(decoded("gASVCg+/", piece, ended) == std::string("\x80\x04\x95\x0a\x0f\xbf"));
    CHECK(!ended);
    CHECK(decoded("Zm9vYmE=Zm9v", piece, ended) == "fooba");
    CHECK(ended);
    CHECK(decoded("Zm9v\"}]", piece, ended) == "foo");
    CHECK(ended);
    CHECK(decoded("", piece, ended).empty());
  }
}

}  // namespace stepscope::formats
