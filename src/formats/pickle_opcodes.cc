#include "formats/pickle_opcodes.h"

namespace stepscope::formats {
namespace {

struct Named {
  std::uint8_t opcode;
  PickleOpName name;
};

// All of protocols 0 to 5.
constexpr Named kNames[] = {
    {'(', {"MARK"}},
    {')', {"EMPTY_TUPLE"}},
    {'.', {"STOP"}},
    {'0', {"POP"}},
    {'1', {"POP_MARK"}},
    {'2', {"DUP"}},
    {'B', {"BINBYTES"}},
    {'C', {"SHORT_BINBYTES"}},
    {'F', {"FLOAT"}},
    {'G', {"BINFLOAT"}},
    {'I', {"INT"}},
    {'J', {"BININT"}},
    {'K', {"BININT1"}},
    {'L', {"LONG"}},
    {'M', {"BININT2"}},
    {'N', {"NONE"}},
    {'P', {"PERSID", true}},
    {'Q', {"BINPERSID", true}},
    {'R', {"REDUCE", true}},
    {'S', {"STRING"}},
    {'T', {"BINSTRING"}},
    {'U', {"SHORT_BINSTRING"}},
    {'V', {"UNICODE"}},
    {'X', {"BINUNICODE"}},
    {']', {"EMPTY_LIST"}},
    {'a', {"APPEND"}},
    {'b', {"BUILD", true}},
    {'c', {"GLOBAL", true}},
    {'d', {"DICT"}},
    {'e', {"APPENDS"}},
    {'g', {"GET"}},
    {'h', {"BINGET"}},
    {'i', {"INST", true}},
    {'j', {"LONG_BINGET"}},
    {'l', {"LIST"}},
    {'o', {"OBJ", true}},
    {'p', {"PUT"}},
    {'q', {"BINPUT"}},
    {'r', {"LONG_BINPUT"}},
    {'s', {"SETITEM"}},
    {'t', {"TUPLE"}},
    {'u', {"SETITEMS"}},
    {'}', {"EMPTY_DICT"}},
    {0x80, {"PROTO"}},
    {0x81, {"NEWOBJ", true}},
    {0x82, {"EXT1", true}},
    {0x83, {"EXT2", true}},
    {0x84, {"EXT4", true}},
    {0x85, {"TUPLE1"}},
    {0x86, {"TUPLE2"}},
    {0x87, {"TUPLE3"}},
    {0x88, {"NEWTRUE"}},
    {0x89, {"NEWFALSE"}},
    {0x8a, {"LONG1"}},
    {0x8b, {"LONG4"}},
    {0x8c, {"SHORT_BINUNICODE"}},
    {0x8d, {"BINUNICODE8"}},
    {0x8e, {"BINBYTES8"}},
    {0x8f, {"EMPTY_SET"}},
    {0x90, {"ADDITEMS"}},
    {0x91, {"FROZENSET"}},
    {0x92, {"NEWOBJ_EX", true}},
    {0x93, {"STACK_GLOBAL", true}},
    {0x94, {"MEMOIZE"}},
    {0x95, {"FRAME"}},
    {0x96, {"BYTEARRAY8"}},
    {0x97, {"NEXT_BUFFER"}},
    {0x98, {"READONLY_BUFFER"}},
};

}  // namespace

PickleOpName pickle_op_name(std::uint8_t opcode) {
  for (const Named& one : kNames) {
    if (one.opcode == opcode) return one.name;
  }
  return {};
}

}  // namespace stepscope::formats
