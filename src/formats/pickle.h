// Pickle: Python's pickles of plain data, read without Python and without running anything.
//
// A machine for the opcodes that make None, booleans, numbers, texts, lists, tuples and dicts (pickle_opcodes.h),
// protocols 2 to 5. Any other opcode is refused by name and byte offset: with classes and functions a pickle is a
// program. Nothing recurses, neither here nor when the values are given back.
//
// A pickle is mostly many containers of few shapes. So each one is shown to the caller (PickleRows) as soon as it is
// whole, and the caller may say "row 17" instead; then its memory is used again. It is whole when it lies in another
// one or, a dict, when a container follows it. From then on adding to it is refused, and so no value can hold itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/column.h"
#include "base/result.h"
#include "base/string_pool.h"
#include "formats/byte_window.h"
#include "formats/pickle_opcodes.h"

namespace stepscope::formats {

// One value in 8 bytes. Numbers beyond 60 bits, reals and what is in containers are with the Pickle that gave it.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { unset, none, boolean, integer, real = 5, text, row, list, tuple, dict };

  constexpr PickleValue() = default;
  // What the caller makes of a container: any number of 60 bits.
  static constexpr PickleValue row(std::uint64_t number) { return {Kind::row, static_cast<std::int64_t>(number)}; }

  constexpr Kind kind() const { return is_big() ? Kind::integer : static_cast<Kind>(bits_ & 15); }
  constexpr bool is(Kind kind) const {
    return (bits_ & 15) == static_cast<std::uint8_t>(kind) || (kind == Kind::integer && is_big());
  }
  constexpr bool is_container() const { return (bits_ & 15) >= static_cast<std::uint8_t>(Kind::list); }
  // Of a row its number, of a boolean 0 or 1.
  constexpr std::uint64_t number() const { return bits_ >> 4; }
  friend constexpr bool operator==(PickleValue, PickleValue) = default;

 private:
  friend class Pickle;
  static constexpr std::uint8_t kBig = 4;  // an integer beyond 60 bits: its index in Pickle::big_

  constexpr PickleValue(std::uint8_t kind, std::int64_t payload)
      : bits_(static_cast<std::uint64_t>(payload) << 4 | kind) {}
  constexpr PickleValue(Kind kind, std::int64_t payload) : PickleValue(static_cast<std::uint8_t>(kind), payload) {}
  constexpr bool is_big() const { return (bits_ & 15) == kBig; }
  constexpr std::int64_t payload() const { return static_cast<std::int64_t>(bits_) >> 4; }

  std::uint64_t bits_ = 0;
};

class Pickle;

// What becomes of the containers of a pickle.
class PickleRows {
 public:
  virtual ~PickleRows() = default;
  // A container that can no longer change: the elements of a list or tuple, the keys and values of a dict in turn (keys
  // are no containers; of equal ones the last counts). `offset` is the byte that began it. Gives PickleValue::row() or,
  // to keep it as it is for items(), an unset value.
  virtual PickleValue whole(const Pickle& pickle, PickleValue::Kind kind, std::span<const PickleValue> items,
                            std::uint64_t offset) = 0;
  // Memory held, for the limit.
  virtual std::size_t bytes() const = 0;
};

class Pickle {
 public:
  using Value = PickleValue;
  using Kind = PickleValue::Kind;

  static constexpr std::size_t kLongestText = 64 << 20;
  // What may be held is this and kMemoryFactor times what was read; a pickle that wants more was made to.
  static constexpr std::size_t kLeastMemory = 64 << 20;
  static constexpr std::size_t kMemoryFactor = 4;

  // Texts are interned in `texts`. `path` is for errors only. Borrows all. `window`: see ByteWindow.
  Pickle(TextFile& file, std::string path, StringPool& texts, PickleRows& rows,
         std::size_t window = ByteWindow::kWindow);

  // The one value that the pickle makes. Errors: malformed (with the offset of the opcode), unsupported (an opcode that
  // is no data, another protocol), too_large (memory, a text), unreadable.
  Result<Value> read();

  // Empty: no integer, or it does not fit. Addresses go up to 2^64 - 1.
  std::optional<std::int64_t> integer(Value value) const {
    if (!value.is(Kind::integer)) return std::nullopt;
    return value.is_big() ? big_integer(value) : value.payload();
  }
  std::optional<std::uint64_t> natural(Value value) const {
    if (!value.is(Kind::integer)) return std::nullopt;
    if (value.is_big()) return big_natural(value);
    return value.payload() < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(value.payload()));
  }
  std::optional<double> real(Value value) const;  // of integers too
  // none: no text
  StringId text(Value value) const {
    return value.is(Kind::text) ? static_cast<StringId>(value.number()) : StringId::none;
  }
  std::string_view text_of(Value value) const { return texts_[text(value)]; }
  // What whole() kept.
  std::span<const Value> items(Value container) const;

  int protocol() const { return protocol_; }
  bool bytes_behind() { return bytes_.has(1); }  // does anything stand behind the end of the pickle?
  std::uint64_t offset() const { return bytes_.offset(); }

 private:
  struct Container {
    std::vector<Value> items;
    std::uint64_t offset = 0;
    std::uint32_t memo = kNowhere;  // where it is noted
    bool whole = false;
    bool shared = false;  // known elsewhere than in one place of the stack and one of the memo
    Value row;
  };
  struct Big {
    std::uint64_t bits;
    bool negative;
  };
  static constexpr std::uint32_t kNowhere = 0xffffffff;

  bool begin();
  bool step(PickleOp opcode);
  Result<Value> end();

  bool number(PickleOp opcode);
  bool long_integer(std::size_t size);
  bool string(std::size_t length_bytes);
  bool add_to_container(PickleOp opcode);
  bool make_from_mark(Kind kind);
  bool make(Kind kind, std::size_t size);
  bool put(std::uint64_t index);
  bool get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[index].is(Kind::unset)) return unknown_memo(index);
    return push(memo_[index].is_container() ? container_of_memo(index) : memo_[index]);
  }
  bool get_many();
  bool unknown_memo(std::uint64_t index);
  Value container_of_memo(std::uint64_t index);

  bool push(Value value) {
    stack_.push_back(value);
    return true;
  }
  std::optional<std::int64_t> big_integer(Value value) const;
  std::optional<std::uint64_t> big_natural(Value value) const;
  bool push_big(std::uint64_t bits, bool negative);
  std::size_t above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  bool take_mark(std::size_t& first);
  bool fits_dict(std::span<const Value> pairs);
  void move_items(Container& target, std::size_t first);
  void settle(std::size_t first);
  Value settled(Value value);
  void seal(Value value);

  bool refuse(ErrorKind kind, std::string message, std::string hint = {});
  bool malformed(std::string what);
  bool refuse_opcode(std::uint8_t opcode);
  bool cut();
  bool within_memory();

  ByteWindow bytes_;
  std::string path_;
  StringPool& texts_;
  PickleRows& rows_;
  int protocol_ = 0;
  std::uint64_t opcode_at_ = 0, look_at_ = 0;  // look_at_: where memory is next weighed
  Column<Value> stack_, memo_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::uint64_t noted_ = 0;         // entries of the memo that are set
  std::vector<Container> containers_;
  std::vector<std::uint32_t> free_;  // containers to use again
  std::size_t kept_items_ = 0;       // values in containers
  std::vector<Big> big_;
  std::vector<double> reals_;
  std::optional<Error> error_;
};

}  // namespace stepscope::formats
