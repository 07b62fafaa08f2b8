#include "session/trace_archive.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "model/trace_members.h"

namespace stepscope::session {
namespace {

constexpr std::size_t kAlignment = 64;

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  Writer(ByteSink sink, void* target) : sink_(sink), target_(target) {}
  bool ok() const { return ok_; }

  template <Plain T>
  void operator()(const T& value) {
    put(&value, sizeof value);
  }
  void operator()(const std::string& text) { bytes(text.data(), text.size()); }
  template <Plain T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    (*this)(value.value_or(T{}));
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::uint64_t{values.size()});
    for (const T& value : values) (*this)(value);
  }
  template <class T>
  void operator()(const Column<T>& column) {
    (*this)(std::uint64_t{column.size()});
    align();
    put(column.data(), column.bytes());
  }
  void operator()(const NarrowColumn& column) {
    (*this)(std::uint64_t{column.size()});
    (*this)(column.low());
    (*this)(column.wide());
  }
  template <class T>
  void operator()(const OptionalColumn<T>& column) {
    (*this)(std::uint64_t{column.size()});
    (*this)(column.values());
  }
  void operator()(const StringPool& strings) {
    (*this)(std::uint64_t{strings.size()});
    for (std::uint32_t i = 0; i < strings.size(); i++) {
      const std::string_view text = strings[static_cast<StringId>(i)];
      bytes(text.data(), text.size());
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(const T& part) { each_member(part, *this); }

 private:
  void bytes(const char* data, std::size_t size) {
    (*this)(std::uint64_t{size});
    put(data, size);
  }
  void align() {
    static constexpr char zeros[kAlignment] = {};
    put(zeros, (kAlignment - at_ % kAlignment) % kAlignment);
  }
  void put(const void* data, std::size_t size) {
    at_ += size;
    if (size > 0 && ok_) ok_ = sink_(target_, data, size);
  }

  ByteSink sink_;
  void* target_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// Every read is checked against the end; after the first failure nothing is read any more.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  bool ok() const { return ok_ && at_ == bytes_.size(); }

  template <Plain T>
  void operator()(T& value) {
    if (const std::byte* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
  }
  void operator()(std::string& text) { text = view(); }
  template <Plain T>
  void operator()(std::optional<T>& value) {
    bool given = false;
    T content{};
    (*this)(given);
    (*this)(content);
    if (given) value = content;
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    const std::uint64_t count = number();
    if (count > bytes_.size()) ok_ = false;  // each element takes a byte at least
    for (std::uint64_t i = 0; ok_ && i < count; i++) (*this)(values.emplace_back());
  }
  template <class T>
  void operator()(Column<T>& column) {
    const std::uint64_t rows = number();
    take((kAlignment - at_ % kAlignment) % kAlignment);
    if (rows > bytes_.size() / sizeof(T)) ok_ = false;
    const std::byte* from = take(static_cast<std::size_t>(rows) * sizeof(T));
    if (from == nullptr || rows == 0) return;
    column = Column<T>::view({reinterpret_cast<const T*>(from), static_cast<std::size_t>(rows)}, owner_);
  }
  void operator()(NarrowColumn& column) {
    const std::uint64_t rows = number();
    Column<std::uint32_t> low;
    Column<NarrowColumn::Wide> wide;
    (*this)(low);
    (*this)(wide);
    if (!low.empty() && low.size() != rows) ok_ = false;
    column = NarrowColumn::view(rows, std::move(low), std::move(wide));
  }
  template <class T>
  void operator()(OptionalColumn<T>& column) {
    const std::uint64_t rows = number();
    Column<T> values;
    (*this)(values);
    if (!values.empty() && values.size() != rows) ok_ = false;
    column = OptionalColumn<T>::view(rows, std::move(values));
  }
  void operator()(StringPool& strings) {
    const std::uint64_t count = number();
    for (std::uint64_t i = 0; ok_ && i < count; i++) strings.intern(view());
    if (strings.size() != count) ok_ = false;
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(T& part) { each_member(part, *this); }

 private:
  std::uint64_t number() {
    std::uint64_t value = 0;
    (*this)(value);
    return value;
  }
  std::string_view view() {
    const std::uint64_t size = number();
    const std::byte* from = size <= bytes_.size() ? take(static_cast<std::size_t>(size)) : nullptr;
    if (from == nullptr && size > 0) ok_ = false;
    return from == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(from), size);
  }
  const std::byte* take(std::size_t size) {
    if (!ok_ || size > bytes_.size() - at_) {
      ok_ = false;
      return nullptr;
    }
    const std::byte* from = bytes_.data() + at_;
    at_ += size;
    return from;
  }

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

bool write_archive(const Trace& trace, ByteSink sink, void* target) {
  Writer writer(sink, target);
  writer(trace);
  return writer.ok();
}

std::optional<Trace> read_archive(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Reader reader(bytes, std::move(owner));
  Trace trace;
  reader(trace);
  if (!reader.ok()) return std::nullopt;
  return trace;
}

}  // namespace stepscope::session
