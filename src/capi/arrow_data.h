// Building blocks of the Arrow C data interface: one owned array or schema at a time.
//
// Shape: an ArrayParts says what an array consists of; make_array turns it into an ArrowArray whose release callback
// frees exactly that. Every child and dictionary owns its own memory, because the interface allows a consumer to move a
// child away and release the parent first. Buffers are borrowed from `keep`: vectors made here, or the run itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepscope/arrow.h"

namespace stepscope::capi {

using Keep = std::shared_ptr<const void>;
using SchemaMetadata = std::vector<std::pair<std::string, std::string>>;

struct ArrayParts {
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::vector<const void*> buffers;    // [0]: validity bitmap, nullptr when null_count is 0
  std::vector<Keep> keep;              // what keeps the buffers alive
  std::vector<ArrowArray> children;    // taken over
  std::vector<ArrowArray> dictionary;  // none or one; taken over
};

struct SchemaParts {
  std::string format;
  std::string name;
  bool nullable = true;
  SchemaMetadata metadata;
  std::vector<ArrowSchema> children;    // taken over
  std::vector<ArrowSchema> dictionary;  // none or one; taken over
};

ArrowArray make_array(ArrayParts parts);
ArrowSchema make_schema(SchemaParts parts);

// A vector that an array keeps alive; `data` is never null, so that empty columns still have an address.
template <class T>
const void* keep_vector(std::vector<T> values, std::vector<Keep>& keep) {
  if (values.empty()) values.reserve(1);
  auto owned = std::make_shared<const std::vector<T>>(std::move(values));
  keep.push_back(owned);
  return owned->data();
}

// Bits in Arrow's order (least significant first); bit set: the row has a value.
class Bitmap {
 public:
  explicit Bitmap(std::size_t rows) : bits_((rows + 7) / 8, 0) {}
  void set(std::size_t row) { bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | (1u << (row % 8))); }
  std::vector<std::uint8_t> take() { return std::move(bits_); }

 private:
  std::vector<std::uint8_t> bits_;
};

// Arrays, schemas and streams handed out and not yet released.
std::int64_t alive();
void count_alive(std::int64_t change);

}  // namespace stepscope::capi
