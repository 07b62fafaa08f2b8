// The machine of pickles: each opcode, each refusal with its byte, Python's own bytes of protocols 2 to 5, and pickles
// that were made to hurt.
#include "formats/pickle.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "base/temp_fixture.h"
#include "formats/pickle_fixture.h"

namespace stepscope::formats {
namespace {

using namespace pickle_fixture;
using namespace std::string_literals;
using Kind = PickleValue::Kind;

// Keeps every container, or makes rows of all dicts.
struct Rows final : formats::PickleRows {
  bool of_dicts = false;
  std::vector<std::uint64_t> offsets;  // of what was shown, in order

  PickleValue whole(const Pickle&, Kind kind, std::span<const PickleValue>, std::uint64_t offset) override {
    offsets.push_back(offset);
    return of_dicts && kind == Kind::dict ? PickleValue::row(offsets.size() - 1) : PickleValue();
  }
  std::size_t bytes() const override { return 0; }
};

struct Read {
  explicit Read(std::string_view bytes, bool rows_of_dicts = false, std::size_t window = ByteWindow::kWindow)
      : temp(bytes, "snapshot.pickle") {
    rows.of_dicts = rows_of_dicts;
    auto opened = formats::TextFile::open(temp.path(), 0);
    REQUIRE(opened);
    file.emplace(std::move(*opened));
    pickle.emplace(*file, temp.path(), texts, rows, window);
    root.emplace(pickle->read());
  }

  // As Python would print it, nearly.
  std::string shown(PickleValue value) const {
    const auto all = [&](std::string before, std::string after) {
      for (const PickleValue item : pickle->items(value)) before += shown(item) + " ";
      return before + after;
    };
    switch (value.kind()) {
      case Kind::unset: return "unset";
      case Kind::none: return "None";
      case Kind::boolean: return value.number() ? "True" : "False";
      case Kind::integer:
        if (const auto number = pickle->integer(value)) return std::to_string(*number);
        return std::to_string(*pickle->natural(value)) + "u";
      case Kind::real: {
        char text[32];
        std::snprintf(text, sizeof text, "%g", *pickle->real(value));
        return text;
      }
      case Kind::text: return "'" + std::string(pickle->text_of(value)) + "'";
      case Kind::row: return "row " + std::to_string(value.number());
      case Kind::list: return all("[ ", "]");
      case Kind::tuple: return all("( ", ")");
      case Kind::dict: return all("{ ", "}");
    }
    return "";
  }
  std::string shown() const { return *root ? shown(**root) : to_text(root->error()); }

  TempFile temp;
  StringPool texts;
  Rows rows;
  std::optional<formats::TextFile> file;
  std::optional<Pickle> pickle;
  std::optional<Result<PickleValue>> root;
};

std::string value_of(std::string_view body) { return Read("\x80\x04" + std::string(body) + ".").shown(); }

void check_refused(const std::string& bytes, std::uint64_t offset, std::string_view what,
                   ErrorKind kind = ErrorKind::malformed) {
  CAPTURE(what);
  const Read read(bytes);
  REQUIRE_FALSE(*read.root);
  const Error& error = read.root->error();
  CHECK_MESSAGE(error.message.find(what) != std::string::npos, error.message);
  CHECK(error.kind == kind);
  CHECK(error.offset == offset);
  CHECK(error.file == read.temp.path());
  CHECK_FALSE(error.hint.empty());
}

// What pickle.dumps() of Python 3.11 makes of
//   {"a": [1, -2, 300, 70000, 2**40, -2**40, 2**64 - 1], "b": (True, False, None, 1.5), "t": ("x",),
//    "e": ((), [], {}), "p": ("y", "y", 3)} and "again", the list of "a" once more; protocols 2 to 5.
constexpr std::string_view kByPython[] = {
    {"\x80\x02\x7d\x71\x00\x28\x58\x01\x00\x00\x00\x61\x71\x01\x5d\x71\x02\x28\x4b\x01\x4a\xfe\xff\xff\xff\x4d\x2c"
     "\x01\x4a\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09\xff\xff\xff"
     "\xff\xff\xff\xff\xff\x00\x65\x58\x01\x00\x00\x00\x62\x71\x03\x28\x88\x89\x4e\x47\x3f\xf8\x00\x00\x00\x00\x00"
     "\x00\x74\x71\x04\x58\x01\x00\x00\x00\x74\x71\x05\x58\x01\x00\x00\x00\x78\x71\x06\x85\x71\x07\x58\x01\x00\x00"
     "\x00\x65\x71\x08\x29\x5d\x71\x09\x7d\x71\x0a\x87\x71\x0b\x58\x01\x00\x00\x00\x70\x71\x0c\x58\x01\x00\x00\x00"
     "\x79\x71\x0d\x68\x0d\x4b\x03\x87\x71\x0e\x58\x05\x00\x00\x00\x61\x67\x61\x69\x6e\x71\x0f\x68\x02\x75\x2e",
     161},
    {"\x80\x03\x7d\x71\x00\x28\x58\x01\x00\x00\x00\x61\x71\x01\x5d\x71\x02\x28\x4b\x01\x4a\xfe\xff\xff\xff\x4d\x2c"
     "\x01\x4a\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09\xff\xff\xff"
     "\xff\xff\xff\xff\xff\x00\x65\x58\x01\x00\x00\x00\x62\x71\x03\x28\x88\x89\x4e\x47\x3f\xf8\x00\x00\x00\x00\x00"
     "\x00\x74\x71\x04\x58\x01\x00\x00\x00\x74\x71\x05\x58\x01\x00\x00\x00\x78\x71\x06\x85\x71\x07\x58\x01\x00\x00"
     "\x00\x65\x71\x08\x29\x5d\x71\x09\x7d\x71\x0a\x87\x71\x0b\x58\x01\x00\x00\x00\x70\x71\x0c\x58\x01\x00\x00\x00"
     "\x79\x71\x0d\x68\x0d\x4b\x03\x87\x71\x0e\x58\x05\x00\x00\x00\x61\x67\x61\x69\x6e\x71\x0f\x68\x02\x75\x2e",
     161},
    {"\x80\x04\x95\x77\x00\x00\x00\x00\x00\x00\x00\x7d\x94\x28\x8c\x01\x61\x94\x5d\x94\x28\x4b\x01\x4a\xfe\xff\xff"
     "\xff\x4d\x2c\x01\x4a\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09"
     "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x65\x8c\x01\x62\x94\x28\x88\x89\x4e\x47\x3f\xf8\x00\x00\x00\x00\x00\x00"
     "\x74\x94\x8c\x01\x74\x94\x8c\x01\x78\x94\x85\x94\x8c\x01\x65\x94\x29\x5d\x94\x7d\x94\x87\x94\x8c\x01\x70\x94"
     "\x8c\x01\x79\x94\x68\x0d\x4b\x03\x87\x94\x8c\x05\x61\x67\x61\x69\x6e\x94\x68\x02\x75\x2e",
     130},
    {"\x80\x05\x95\x77\x00\x00\x00\x00\x00\x00\x00\x7d\x94\x28\x8c\x01\x61\x94\x5d\x94\x28\x4b\x01\x4a\xfe\xff\xff"
     "\xff\x4d\x2c\x01\x4a\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x09"
     "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x65\x8c\x01\x62\x94\x28\x88\x89\x4e\x47\x3f\xf8\x00\x00\x00\x00\x00\x00"
     "\x74\x94\x8c\x01\x74\x94\x8c\x01\x78\x94\x85\x94\x8c\x01\x65\x94\x29\x5d\x94\x7d\x94\x87\x94\x8c\x01\x70\x94"
     "\x8c\x01\x79\x94\x68\x0d\x4b\x03\x87\x94\x8c\x05\x61\x67\x61\x69\x6e\x94\x68\x02\x75\x2e",
     130},
};

}  // namespace

TEST_CASE("pickle: what Python writes in protocols 2 to 5") {
  int protocol = 2;
  for (const std::string_view bytes : kByPython) {
    Read read(bytes);
    CHECK(read.shown() ==
          "{ 'a' [ 1 -2 300 70000 1099511627776 -1099511627776 18446744073709551615u ] 'b' ( True False None 1.5 ) "
          "'t' ( 'x' ) 'e' ( ( ) [ ] { } ) 'p' ( 'y' 'y' 3 ) 'again' [ 1 -2 300 70000 1099511627776 -1099511627776 "
          "18446744073709551615u ] }");
    CHECK(Read(bytes, false, 16).shown() == read.shown());
    CHECK(read.pickle->protocol() == protocol++);
    CHECK_FALSE(read.pickle->bytes_behind());
  }
}

TEST_CASE("pickle: numbers") {
  CHECK(value_of("N") == "None");
  CHECK(value_of("\x88") == "True");
  CHECK(value_of("\x89") == "False");
  CHECK(value_of("K\xff"s) == "255");
  CHECK(value_of("M\xff\xff"s) == "65535");
  CHECK(value_of("J\xff\xff\xff\xff"s) == "-1");
  CHECK(value_of("J\xff\xff\xff\x7f"s) == "2147483647");
  CHECK(value_of("\x8a\x00"s) == "0");
  CHECK(value_of("\x8a\x01\x80"s) == "-128");
  CHECK(value_of("\x8a\x02\x80\x00"s) == "128");
  CHECK(value_of("\x8a\x03\xff\xff\xff"s) == "-1");
  CHECK(value_of(integer(std::uint64_t{1} << 59)) == "576460752303423488");
  CHECK(value_of(integer(-(std::uint64_t{1} << 59))) == "-576460752303423488");
  CHECK(value_of(integer(0x7fffffffffffffff)) == "9223372036854775807");
  CHECK(value_of(integer(0x8000000000000000)) == "-9223372036854775808");
  CHECK(value_of("\x8a\x09"s + bytes_of(0x8000000000000000, 8) + "\x00"s) == "9223372036854775808u");
  CHECK(value_of("\x8a\x09"s + bytes_of(5, 8) + "\x00"s) == "5");
  CHECK(value_of("\x8a\x09"s + bytes_of(0x8000000000000000, 8) + "\xff"s) == "-9223372036854775808");
  CHECK(value_of("\x8b\x02\x00\x00\x00\x80\x00"s) == "128");
  CHECK(value_of("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s) == "-1.5");
}

TEST_CASE("pickle: texts of every length") {
  CHECK(value_of("\x8c\x02hi"s) == "'hi'");
  CHECK(value_of("\x8c\x00"s) == "''");
  CHECK(value_of("X\x03\x00\x00\x00h\x00i"s) == "'h\0i'"s);
  CHECK(value_of("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s) == "'hi'");
  const std::string large(3'000'000, 'x');  // longer than the window
  CHECK(value_of(text(large)) == "'" + large + "'");
}

TEST_CASE("pickle: lists, tuples and dicts") {
  CHECK(value_of("]K\x01"
                 "a") == "[ 1 ]");
  CHECK(value_of("](K\x01K\x02"
                 "e(K\x03"
                 "e") == "[ 1 2 3 ]");
  CHECK(value_of("](e") == "[ ]");
  CHECK(value_of("(K\x01K\x02l") == "[ 1 2 ]");
  CHECK(value_of("(l") == "[ ]");
  CHECK(value_of(")") == "( )");
  CHECK(value_of("K\x01\x85") == "( 1 )");
  CHECK(value_of("K\x01K\x02\x86") == "( 1 2 )");
  CHECK(value_of("K\x01K\x02K\x03\x87") == "( 1 2 3 )");
  CHECK(value_of("(K\x01K\x02K\x03K\x04t") == "( 1 2 3 4 )");
  CHECK(value_of("}K\x01K\x02s") == "{ 1 2 }");
  CHECK(value_of("}(K\x01K\x02K\x03K\x04u(u") == "{ 1 2 3 4 }");
  CHECK(value_of("(K\x01K\x02"
                 "d") == "{ 1 2 }");
  CHECK(value_of("](]]e") == "[ [ ] [ ] ]");
  CHECK(value_of("\x95\x01\x00\x00\x00\x00\x00\x00\x00"s + "N") == "None");  // FRAME is a hint
}

TEST_CASE("pickle: the memo, by every opcode that fills and asks it") {
  CHECK(value_of("](K\x07q\x00h\x00K\x08r\x01\x00\x00\x00j\x01\x00\x00\x00"
                 "e"s) == "[ 7 7 8 8 ]");
  CHECK(value_of("](K\x07\x94K\x08\x94h\x01h\x00"
                 "e"s) == "[ 7 8 8 7 ]");
  CHECK(value_of("](K\x07q\x03K\x08q\x03h\x03"
                 "e"s) == "[ 7 8 8 ]");  // an entry is set anew
  CHECK(value_of("](]\x94K\x01"
                 "ah\x00h\x00"
                 "e"s) == "[ [ 1 ] [ 1 ] [ 1 ] ]");  // one list three times
  CHECK(value_of("](]\x94h\x00K\x01"
                 "ah\x00"
                 "e"s) == "[ [ 1 ] [ 1 ] [ 1 ] ]");  // filled by its second name
}

TEST_CASE("pickle: containers are shown when they can no longer change, and a row stands for them from then on") {
  //             offsets: 2  3   4   5 ...
  const Read read(
      "\x80\x04](}\x94(K\x01K\x02uh\x00}q\x01K\x01K\x01se(h\x00h\x01"
      "e."s,
      true);
  CHECK(read.shown() == "[ row 0 row 0 row 1 row 0 row 1 ]");
  CHECK(read.rows.offsets == std::vector<std::uint64_t>{4, 14, 2});  // the same dict is shown once
  const Read nested("\x80\x04}K\x01}K\x02}sss."s, true);
  CHECK_FALSE(*nested.root);
  const Read inner("\x80\x04}K\x01}K\x02}ss."s, true);
  CHECK(inner.shown() == "row 2");
  CHECK(inner.rows.offsets == std::vector<std::uint64_t>{8, 5, 2});
}

TEST_CASE("pickle: a dict is shown as soon as a container follows it") {
  const Read read("\x80\x04](}\x94K\x01K\x02s}K\x03h\x00s}e."s, true);
  CHECK(read.shown() == "[ row 0 row 1 row 2 ]");
  CHECK(read.rows.offsets == std::vector<std::uint64_t>{4, 11, 17, 2});
  check_refused(pickle("](}\x94}h\x00NNse"s), 11, "whole already");
}

TEST_CASE("pickle: what is no plain data is refused by name and byte") {
  constexpr std::string_view allowed = ".(NJKMGX]ael)t}sudqrhj\x88\x89\x8a\x8b\x8c\x8d\x85\x86\x87\x94\x95";
  int refused = 0;
  for (int byte = 0; byte < 256; byte++) {
    if (allowed.find(static_cast<char>(byte)) != std::string_view::npos) continue;
    const auto name = formats::pickle_op_name(static_cast<std::uint8_t>(byte)).name;
    const std::string opcode(1, static_cast<char>(byte));
    check_refused("\x80\x04NN" + opcode + "os\nsystem\n.", 4, name.empty() ? "is no opcode" : name,
                  name.empty() ? ErrorKind::malformed : ErrorKind::unsupported);
    refused += name.empty() ? 0 : 1;
  }
  CHECK(refused == 68 - 33);  // PROTO is taken once only
  check_refused("\x80\x04N\x8c\x02os\x8c\x06system\x93)R.", 15, "STACK_GLOBAL, with which it is a program",
                ErrorKind::unsupported);
  check_refused(
      "\x80\x02"
      "cos\nsystem\n(X\x02\x00\x00\x00idtR."s,
      2, "GLOBAL", ErrorKind::unsupported);
}

TEST_CASE("pickle: other protocols and other files") {
  for (const char protocol : {'\x00', '\x01', '\x06', '\xff'}) {
    check_refused("\x80"s + protocol + "N.", 0, "protocol", ErrorKind::unsupported);
  }
  check_refused("(lp0\n.", 0, "does not begin as a pickle", ErrorKind::unsupported);
  check_refused("\x80\x04N\x80\x04.", 3, "PROTO", ErrorKind::unsupported);
  check_refused("", 0, "empty");
  check_refused("\x80", 0, "cut");
}

TEST_CASE("pickle: broken ones, each with the byte of its opcode") {
  check_refused(pickle(""), 2, "STOP where 0 values");
  check_refused(pickle("NN"), 4, "STOP where 2 values");
  check_refused(pickle("N("), 4, "1 marks");
  for (const char* opcode : {"e", "u", "l", "t", "d"}) check_refused(pickle("]"s + opcode), 3, "no MARK");
  for (const char* opcode : {"a", "s", "\x85", "\x86", "\x87"}) check_refused(pickle(opcode), 2, "too few values");
  check_refused(pickle("](a"), 4, "too few values");  // what stands below a mark is not taken
  check_refused(pickle("NNN(\x85"), 6, "too few values");
  check_refused(pickle("\x94"), 2, "no value to remember");
  check_refused(pickle("N(\x94"), 4, "no value to remember");
  check_refused(pickle("Na"), 3, "no container");
  check_refused(pickle("(e"), 3, "no container");
  check_refused(pickle("NNa"), 4, "no list");
  check_refused(pickle("}Na"), 4, "no list");
  check_refused(pickle(")Na"), 4, "no list");
  check_refused(pickle("]NNs"), 5, "no dict");
  check_refused(pickle("](NNu"), 6, "no dict");
  check_refused(pickle("}(NNNu"), 7, "a key without a value");
  check_refused(pickle("(Nd"), 4, "a key without a value");
  for (const char* key : {"]", "}", ")"}) {
    check_refused(pickle("}"s + key + "Ns"), 5, "the key of a dict");
    check_refused(pickle("("s + key + "Nd"), 5, "the key of a dict");
  }
  check_refused(pickle("h\x00"s), 2, "memo entry 0 was never set");
  check_refused(pickle("Nq\x02h\x01"s), 5, "memo entry 1 was never set");
  check_refused(pickle("j\xff\xff\xff\xff"s), 2, "memo entry 4294967295 was never set");
  check_refused(pickle("Nr\xff\xff\xff\x7f"s), 3, "memo entry 2147483647 so early");
  check_refused(pickle("\x8a\x0a" + std::string(10, '\x01')), 2, "an integer of 10 bytes");
  check_refused(pickle("\x8a\x09" + std::string(9, '\x01')), 2, "more than 64 bits");
  check_refused(pickle("\x8a\x09" + bytes_of(1, 8) + "\xff"), 2, "more than 64 bits");
  check_refused(pickle("\x8b\xff\xff\xff\xff"s), 2, "an integer of 4294967295 bytes");
}

TEST_CASE("pickle: a file cut anywhere is refused with a place in it, and nothing that it claims is believed") {
  for (const std::string_view whole : kByPython) {
    for (std::size_t size = 0; size < whole.size(); size++) {
      const Read read(whole.substr(0, size));
      REQUIRE_FALSE(*read.root);
      CHECK(read.root->error().kind == ErrorKind::malformed);
      CHECK(read.root->error().offset <= size);
    }
  }
  check_refused(pickle("X\xff\xff\xff\x03hello"s), 2, "cut");
  check_refused(pickle("X\xff\xff\xff\xff"s), 2, "a text of 4294967295 bytes", ErrorKind::too_large);
  check_refused(pickle("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s), 2, "a text of 18446744073709551615 bytes",
                ErrorKind::too_large);
}

TEST_CASE("pickle: nothing can hold itself") {
  check_refused(pickle("]\x94h\x00"
                       "a"s),
                6, "is whole already");
  check_refused(pickle("]\x94(h\x00"
                       "e"s),
                7, "is whole already");
  check_refused(pickle("}\x94K\x01h\x00s"s), 8, "is whole already");
  check_refused(pickle("]\x94]\x94h\x00"
                       "ah\x01"
                       "a"s),
                11, "");  // by way of another list
  check_refused(pickle("]\x94\x85h\x00N"
                       "a"s),
                8, "is whole already");  // changed when a tuple has it
}

TEST_CASE("pickle: deep, shared and many: no recursion, no explosion, memory within bounds") {
  const std::size_t depth = 300'000;
  CHECK(*Read(pickle(repeated("]", depth) + repeated("a", depth - 1))).root);
  CHECK(*Read(pickle("N" + repeated("\x85", depth))).root);
  // Each list holds the one before twice: 2^200 elements for who walks them all.
  std::string doubling = "]q\x00"s;
  for (int i = 0; i < 200; i++)
    doubling += "](h"s + static_cast<char>(i) + "h"s + static_cast<char>(i) + "eq"s + static_cast<char>(i + 1);
  const Read shared(pickle("(" + doubling + "l"));
  REQUIRE(*shared.root);
  CHECK(shared.pickle->items(**shared.root).size() == 201);
  const Read many(pickle("(" + repeated("}", 4 << 20) + "l"));
  REQUIRE_FALSE(*many.root);
  CHECK(many.root->error().kind == ErrorKind::too_large);
  CHECK(many.root->error().offset > 1 << 19);
  // As many that become rows take nothing.
  CHECK(*Read(pickle("]" + repeated("}a", 1 << 20)), true).root);
}

TEST_CASE("pickle: bytes behind the end are not read") {
  Read read(pickle("N") + "cos\nsystem\n");
  CHECK(read.shown() == "None");
  CHECK(read.pickle->bytes_behind());
  CHECK(read.pickle->offset() == 4);
}

}  // namespace stepscope::formats
