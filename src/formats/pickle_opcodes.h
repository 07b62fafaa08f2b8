// The opcodes of Python's pickles (pickletools.py says what each does) and their names, for messages.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepscope::formats {

// Those that only make data. Protocols 0 and 1, and what classes, functions and buffers need, are not among them.
enum class PickleOp : std::uint8_t {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  none = 'N',
  newtrue = 0x88,
  newfalse = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  short_binunicode = 0x8c,
  binunicode = 'X',
  binunicode8 = 0x8d,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  list = 'l',
  empty_tuple = ')',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  tuple = 't',
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  dict = 'd',
  memoize = 0x94,
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
};

struct PickleOpName {
  std::string_view name;   // as pickletools spells it; "" for a byte that is no opcode
  bool runs_code = false;  // Python would call or import what the file names
};

PickleOpName pickle_op_name(std::uint8_t opcode);

}  // namespace stepscope::formats
