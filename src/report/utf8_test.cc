#include "report/utf8.h"

#include <doctest/doctest.h>

using namespace stepscope::report;

TEST_CASE("invalid bytes become U+FFFD one by one and the rest stays") {
  CHECK(valid_utf8("plain") == "plain");
  CHECK(valid_utf8("µs €") == "µs €");
  CHECK(valid_utf8("\U0001F600") == "\U0001F600");
  CHECK(valid_utf8("a\xff"
                   "b") == "a\uFFFDb");
  CHECK(valid_utf8("cut \xe2\x82") == "cut \uFFFD\uFFFD");
  CHECK(valid_utf8("\xc0\xaf") == "\uFFFD\uFFFD");                      // overlong '/'
  CHECK(valid_utf8("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");            // a lone surrogate
  CHECK(valid_utf8("\xf4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");  // over U+10FFFF
}

TEST_CASE("a name cannot steer the terminal") {
  CHECK(printable("red \x1b[31m") == "red \uFFFD[31m");
  CHECK(printable("two\nlines\tand a tab") == "two lines and a tab");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\uFFFD31m");  // the one-byte form of ESC [
  CHECK(printable("\u202Eabc") == "\uFFFDabc");
}

TEST_CASE("width counts what the terminal shows") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("µs") == 2);
  CHECK(display_width("漢字") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("\xff\xff") == 2);
}

TEST_CASE("ASCII spelling") {
  CHECK(to_ascii("12.3 µs · 96 % → ok") == "12.3 us - 96 % -> ok");
  CHECK(to_ascii("漢") == "?");
}
