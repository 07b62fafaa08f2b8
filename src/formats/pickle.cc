#include "formats/pickle.h"

#include <bit>
#include <limits>
#include <utility>

namespace stepscope::formats {
namespace {

constexpr std::uint64_t kWeighEvery = 1 << 20;  // bytes read between two looks at the memory
constexpr std::size_t kRoomKept = 4096;         // values that a container keeps room for when it is used again
constexpr std::int64_t kMostInline = (std::int64_t{1} << 59) - 1;

std::string hex(std::uint8_t byte) {
  constexpr char digits[] = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

}  // namespace

Pickle::Pickle(TextFile& file, std::string path, StringPool& texts, PickleRows& rows, std::size_t window)
    : bytes_(file, window), path_(std::move(path)), texts_(texts), rows_(rows) {}

bool Pickle::begin() {
  if (!bytes_.has(2)) return bytes_.has(1) || bytes_.error() ? cut() : malformed("the file is empty");
  const auto opcode = bytes_.number<PickleOp>();
  protocol_ = bytes_.number<std::uint8_t>();
  if (opcode == PickleOp::proto && protocol_ >= 2 && protocol_ <= 5) return true;
  return refuse(ErrorKind::unsupported,
                opcode == PickleOp::proto ? "the pickle is of protocol " + std::to_string(protocol_)
                                          : std::string("the file does not begin as a pickle of protocol 2 to 5"),
                "Write it with pickle.dump(data, file, protocol=4)");
}

Result<PickleValue> Pickle::end() {
  if (!marks_.empty() || stack_.size() != 1) {
    malformed("STOP where " + std::to_string(stack_.size()) + " values and " + std::to_string(marks_.size()) +
              " marks are left");
    return fail(std::move(*error_));
  }
  return settled(stack_[0]);
}

// ---- plain values ----

bool Pickle::number(PickleOp opcode) {
  switch (opcode) {
    case PickleOp::binint1: return bytes_.has(1) ? push({Kind::integer, bytes_.number<std::uint8_t>()}) : cut();
    case PickleOp::binint2: return bytes_.has(2) ? push({Kind::integer, bytes_.number<std::uint16_t>()}) : cut();
    case PickleOp::binint: return bytes_.has(4) ? push({Kind::integer, bytes_.number<std::int32_t>()}) : cut();
    case PickleOp::long1: return bytes_.has(1) ? long_integer(bytes_.number<std::uint8_t>()) : cut();
    case PickleOp::long4: return bytes_.has(4) ? long_integer(bytes_.number<std::uint32_t>()) : cut();
    default: break;
  }
  if (!bytes_.has(8)) return cut();
  reals_.push_back(std::bit_cast<double>(__builtin_bswap64(bytes_.number<std::uint64_t>())));
  return push({Kind::real, static_cast<std::int64_t>(reals_.size() - 1)});
}

// Little-endian two's complement of any length; 64 bits and a sign are what addresses need.
bool Pickle::long_integer(std::size_t size) {
  if (size > 9) return malformed("an integer of " + std::to_string(size) + " bytes");
  if (!bytes_.has(size)) return cut();
  std::uint64_t bits = 0;
  const char* piece = bytes_.next(size);
  std::memcpy(&bits, piece, std::min<std::size_t>(size, 8));
  if (size == 9) {
    const auto sign = static_cast<std::uint8_t>(piece[8]);
    if (sign != 0 && !(sign == 0xff && bits >> 63)) return malformed("an integer of more than 64 bits");
    return push_big(bits, sign != 0);
  }
  const bool negative = size > 0 && piece[size - 1] & 0x80;
  if (negative && size < 8) bits |= ~std::uint64_t{0} << (8 * size);
  return push_big(bits, negative);
}

bool Pickle::push_big(std::uint64_t bits, bool negative) {
  const auto value = static_cast<std::int64_t>(bits);
  if (negative ? value >= -kMostInline : bits <= static_cast<std::uint64_t>(kMostInline)) {
    return push({Kind::integer, value});
  }
  big_.push_back({bits, negative});
  return push({Value::kBig, static_cast<std::int64_t>(big_.size() - 1)});
}

bool Pickle::string(std::size_t length_bytes) {
  if (!bytes_.has(length_bytes)) return cut();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.next(length_bytes), length_bytes);
  if (length > kLongestText) {
    return refuse(ErrorKind::too_large, "a text of " + std::to_string(length) + " bytes",
                  "Check that the file is whole; no snapshot holds such a text");
  }
  if (!bytes_.has(length)) return cut();
  return push({Kind::text, static_cast<std::int64_t>(texts_.intern({bytes_.next(length), length}))});
}

std::optional<std::int64_t> Pickle::big_integer(Value value) const {
  const Big& big = big_[value.number()];
  if (!big.negative && big.bits >> 63) return std::nullopt;
  return static_cast<std::int64_t>(big.bits);
}

std::optional<std::uint64_t> Pickle::big_natural(Value value) const {
  const Big& big = big_[value.number()];
  return big.negative ? std::nullopt : std::optional(big.bits);
}

std::optional<double> Pickle::real(Value value) const {
  if (value.is(Kind::real)) return reals_[value.number()];
  if (const auto whole = integer(value)) return static_cast<double>(*whole);
  if (const auto large = natural(value)) return static_cast<double>(*large);
  return std::nullopt;
}

// ---- containers ----

bool Pickle::take_mark(std::size_t& first) {
  if (marks_.empty()) return malformed("no MARK stands before it");
  first = marks_.back();
  marks_.pop_back();
  return true;
}

bool Pickle::add_to_container(PickleOp opcode) {
  std::size_t first = stack_.size();
  if (opcode == PickleOp::appends || opcode == PickleOp::setitems) {
    if (!take_mark(first)) return false;
  } else {
    const std::size_t size = opcode == PickleOp::append ? 1 : 2;
    if (above_mark() < size) return malformed("too few values stand before it");
    first -= size;
  }
  const bool to_dict = opcode == PickleOp::setitem || opcode == PickleOp::setitems;
  if (first == (marks_.empty() ? 0 : marks_.back())) return malformed("no container stands before it");
  const Value target = stack_[first - 1];
  if (!target.is(to_dict ? Kind::dict : Kind::list)) {
    return malformed(to_dict ? "it adds to what is no dict" : "it adds to what is no list");
  }
  const std::span<const Value> items = stack_.span().subspan(first);
  if (to_dict && !fits_dict(items)) return false;
  settle(first);
  Container& one = containers_[target.number()];
  // Settling the items may have ended the target itself: then it was to hold itself.
  if (one.whole) return malformed("it changes a container that is whole already");
  move_items(one, first);
  return true;
}

bool Pickle::fits_dict(std::span<const Value> pairs) {
  if (pairs.size() % 2 != 0) return malformed("a key without a value");
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i].kind() >= Kind::row) return malformed("the key of a dict is a list, tuple or dict");
  }
  return true;
}

bool Pickle::make_from_mark(Kind kind) {
  std::size_t first = 0;
  if (!take_mark(first)) return false;
  if (kind == Kind::dict && !fits_dict(stack_.span().subspan(first))) return false;
  return make(kind, stack_.size() - first);
}

bool Pickle::make(Kind kind, std::size_t size) {
  if (above_mark() < size) return malformed("too few values stand before it");
  std::uint32_t at = 0;
  if (free_.empty()) {
    if (containers_.size() == kNowhere) return refuse(ErrorKind::too_large, "more than 2^32 containers at once");
    at = static_cast<std::uint32_t>(containers_.size());
    containers_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  const std::size_t first = stack_.size() - size;
  settle(first);
  Container& one = containers_[at];
  one.offset = opcode_at_;
  one.memo = kNowhere;
  one.whole = one.shared = false;
  one.row = {};
  move_items(one, first);
  // A dict with a container above it is whole as well: what is above would have to be its key. So even a writer that
  // lays out all events before it puts them into their list needs memory for one at a time.
  if (above_mark() > 0 && stack_[stack_.size() - 1].is(Kind::dict)) settle(stack_.size() - 1);
  return push({kind, at});
}

// The values of the stack from `first` on become the container's.
void Pickle::move_items(Container& target, std::size_t first) {
  const std::size_t count = stack_.size() - first;
  if (count == 0) return;
  target.items.insert(target.items.end(), stack_.data() + first, stack_.data() + stack_.size());
  kept_items_ += count;
  stack_.resize(first);
}

// Makes the values of the stack from `first` on what lies in another container.
void Pickle::settle(std::size_t first) {
  for (Value* value = stack_.data() + first; value < stack_.data() + stack_.size(); value++) {
    if (value->is_container()) *value = settled(*value);
  }
}

// A container that is put into another one ends; a row stands for it from now on where the caller gave one.
PickleValue Pickle::settled(Value value) {
  if (!value.is_container()) return value;
  const Container& one = containers_[value.number()];
  if (!one.whole) seal(value);
  return one.row.is(Kind::unset) ? value : one.row;
}

void Pickle::seal(Value value) {
  const auto index = static_cast<std::uint32_t>(value.number());
  Container& one = containers_[index];
  one.whole = true;
  one.row = rows_.whole(*this, value.kind(), one.items, one.offset);
  if (one.row.is(Kind::unset)) return;
  kept_items_ -= one.items.size();
  one.items.clear();
  if (one.items.capacity() > kRoomKept) one.items = {};
  // Whoever remembers it gets the row, and with the last one who does it can be used again.
  if (one.memo != kNowhere && memo_[one.memo] == value) memo_[one.memo] = one.row;
  if (!one.shared) free_.push_back(index);
}

std::span<const PickleValue> Pickle::items(Value container) const {
  if (!container.is_container()) return {};
  return containers_[container.number()].items;
}

// ---- memo ----

bool Pickle::put(std::uint64_t index) {
  if (above_mark() == 0) return malformed("no value to remember stands before it");
  // Each entry takes two bytes at least, so an index beyond the offset was chosen to exhaust memory.
  if (index > opcode_at_ || index >= kNowhere)
    return malformed("memo entry " + std::to_string(index) + " so early in the file");
  if (index >= memo_.size()) memo_.resize(index + 1);
  const Value value = stack_[stack_.size() - 1];
  if (memo_[index].is(Kind::unset)) noted_++;
  memo_[index] = value;
  if (value.is_container()) {
    Container& one = containers_[value.number()];
    one.shared = one.shared || one.memo != kNowhere;
    one.memo = static_cast<std::uint32_t>(index);
  }
  return true;
}

bool Pickle::unknown_memo(std::uint64_t index) {
  return malformed("memo entry " + std::to_string(index) + " was never set");
}

PickleValue Pickle::container_of_memo(std::uint64_t index) {
  Container& one = containers_[memo_[index].number()];
  one.shared = true;
  if (!one.row.is(Kind::unset)) memo_[index] = one.row;
  return memo_[index];
}

// ---- the loop ----

// In one piece with its loop: it runs tens of millions of times a file.
[[gnu::always_inline]] inline bool Pickle::step(PickleOp opcode) {
  switch (opcode) {
    case PickleOp::binget: return bytes_.has(1) ? get(bytes_.number<std::uint8_t>()) : cut();
    case PickleOp::long_binget: return bytes_.has(4) ? get(bytes_.number<std::uint32_t>()) : cut();
    case PickleOp::memoize: return put(noted_);
    case PickleOp::binput: return bytes_.has(1) ? put(bytes_.number<std::uint8_t>()) : cut();
    case PickleOp::long_binput: return bytes_.has(4) ? put(bytes_.number<std::uint32_t>()) : cut();
    case PickleOp::frame:  // only tells readers how much to fetch
      if (!bytes_.has(8)) return cut();
      bytes_.next(8);
      return true;
    case PickleOp::mark: marks_.push_back(stack_.size()); return true;
    case PickleOp::none: return push({Kind::none, 0});
    case PickleOp::newtrue: return push({Kind::boolean, 1});
    case PickleOp::newfalse: return push({Kind::boolean, 0});
    case PickleOp::binint:
    case PickleOp::binint1:
    case PickleOp::binint2:
    case PickleOp::long1:
    case PickleOp::long4:
    case PickleOp::binfloat: return number(opcode);
    case PickleOp::short_binunicode: return string(1);
    case PickleOp::binunicode: return string(4);
    case PickleOp::binunicode8: return string(8);
    case PickleOp::append:
    case PickleOp::appends:
    case PickleOp::setitem:
    case PickleOp::setitems: return add_to_container(opcode);
    case PickleOp::empty_list: return make(Kind::list, 0);
    case PickleOp::empty_tuple: return make(Kind::tuple, 0);
    case PickleOp::empty_dict: return make(Kind::dict, 0);
    case PickleOp::tuple1: return make(Kind::tuple, 1);
    case PickleOp::tuple2: return make(Kind::tuple, 2);
    case PickleOp::tuple3: return make(Kind::tuple, 3);
    case PickleOp::list: return make_from_mark(Kind::list);
    case PickleOp::tuple: return make_from_mark(Kind::tuple);
    case PickleOp::dict: return make_from_mark(Kind::dict);
    case PickleOp::proto:
    case PickleOp::stop: break;
  }
  return refuse_opcode(static_cast<std::uint8_t>(opcode));
}

// Three quarters of a file name what was noted before, by one byte or by four in no order: the length is no branch,
// which would be guessed wrong half of the time.
inline bool Pickle::get_many() {
  constexpr auto kShort = static_cast<std::uint8_t>(PickleOp::binget);
  constexpr auto kLong = static_cast<std::uint8_t>(PickleOp::long_binget);
  static_assert((kShort | 2) == kLong && kShort != kLong);
  while (bytes_.left() >= 5 && (bytes_.peek() | 2) == kLong) {
    opcode_at_ = bytes_.offset();
    const std::uint32_t is_long = bytes_.peek() >> 1 & 1;
    std::uint32_t index;
    std::memcpy(&index, bytes_.next(2 + 3 * is_long) + 1, sizeof index);
    if (!get(index & (0xff | (0 - is_long)))) return false;
  }
  opcode_at_ = bytes_.offset();
  return true;
}

Result<PickleValue> Pickle::read() {
  if (!begin()) return fail(std::move(*error_));
  for (;;) {
    opcode_at_ = bytes_.offset();
    if (!bytes_.has(1)) break;
    if (opcode_at_ >= look_at_ && !within_memory()) return fail(std::move(*error_));
    if (!get_many()) return fail(std::move(*error_));
    if (!bytes_.has(1)) break;
    const auto opcode = bytes_.number<PickleOp>();
    if (opcode == PickleOp::stop) return end();
    if (!step(opcode)) return fail(std::move(*error_));
  }
  cut();
  return fail(std::move(*error_));
}

// ---- refusals ----

bool Pickle::refuse(ErrorKind kind, std::string message, std::string hint) {
  error_ = Error{kind, std::move(message), path_, opcode_at_, std::move(hint)};
  return false;
}

bool Pickle::malformed(std::string what) {
  return refuse(ErrorKind::malformed, "the pickle is broken: " + std::move(what),
                "Write the file again; what it holds cannot be told");
}

bool Pickle::refuse_opcode(std::uint8_t opcode) {
  const PickleOpName known = pickle_op_name(opcode);
  if (known.name.empty()) return malformed(hex(opcode) + " is no opcode");
  std::string message = "the pickle holds the opcode " + std::string(known.name);
  if (!known.runs_code) {
    return refuse(ErrorKind::unsupported, message + ", which no plain data of protocols 2 to 5 has",
                  "Write it with pickle.dump(data, file, protocol=4)");
  }
  return refuse(ErrorKind::unsupported, message + ", with which it is a program and not data; nothing was run",
                "Do not load it with Python's pickle unless you trust who made it");
}

bool Pickle::cut() {
  if (bytes_.error()) {
    error_ = bytes_.error();
    return false;
  }
  return refuse(ErrorKind::malformed, "the pickle is cut: the file ends inside it",
                "Copy or write the file again; it was not written to its end");
}

bool Pickle::within_memory() {
  look_at_ = opcode_at_ + kWeighEvery;
  const std::size_t held = (stack_.size() + memo_.size() + kept_items_ + reals_.size()) * sizeof(Value) +
                           containers_.size() * sizeof(Container) + marks_.size() * sizeof(std::size_t) +
                           big_.size() * sizeof(Big) + texts_.size() * 32 + rows_.bytes();
  if (held <= kLeastMemory + kMemoryFactor * opcode_at_) return true;
  return refuse(ErrorKind::too_large, "the pickle needs more than four times its size in memory",
                "Check where the file comes from; no snapshot does");
}

}  // namespace stepscope::formats
