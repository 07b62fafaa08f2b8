#include "capi/arrow_data.h"

#include <atomic>
#include <cstring>

namespace stepscope::capi {
namespace {

std::atomic<std::int64_t> g_alive{0};  // a counter for tests; decides nothing

// Releases those of `owned` that nobody moved away.
template <class T>
void release_all(std::vector<T>& owned) {
  for (T& one : owned) {
    if (one.release != nullptr) one.release(&one);
  }
}

template <class T>
std::vector<T*> addresses(std::vector<T>& owned) {
  std::vector<T*> all;
  for (T& one : owned) all.push_back(&one);
  return all;
}

struct ArrayOwner {
  ArrayParts parts;
  std::vector<ArrowArray*> children;
};

void release_array(ArrowArray* array) {
  std::unique_ptr<ArrayOwner> owner(static_cast<ArrayOwner*>(array->private_data));
  release_all(owner->parts.children);
  release_all(owner->parts.dictionary);
  array->release = nullptr;
  count_alive(-1);
}

struct SchemaOwner {
  SchemaParts parts;
  std::string metadata;
  std::vector<ArrowSchema*> children;
};

void release_schema(ArrowSchema* schema) {
  std::unique_ptr<SchemaOwner> owner(static_cast<SchemaOwner*>(schema->private_data));
  release_all(owner->parts.children);
  release_all(owner->parts.dictionary);
  schema->release = nullptr;
  count_alive(-1);
}

void append_number(std::string& out, std::size_t number) {
  const auto value = static_cast<std::int32_t>(number);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Arrow's own encoding: the number of pairs, then each key and value with its length before it, as native int32.
std::string encode(const SchemaMetadata& metadata) {
  std::string out;
  append_number(out, metadata.size());
  for (const auto& [key, value] : metadata) {
    for (const std::string* text : {&key, &value}) {
      append_number(out, text->size());
      out += *text;
    }
  }
  return out;
}

}  // namespace

ArrowArray make_array(ArrayParts parts) {
  auto owner = std::make_unique<ArrayOwner>();
  owner->parts = std::move(parts);
  ArrayParts& own = owner->parts;
  owner->children = addresses(own.children);
  ArrowArray array{};
  array.length = own.length;
  array.null_count = own.null_count;
  array.n_buffers = static_cast<std::int64_t>(own.buffers.size());
  array.buffers = own.buffers.data();
  array.n_children = static_cast<std::int64_t>(own.children.size());
  array.children = own.children.empty() ? nullptr : owner->children.data();
  array.dictionary = own.dictionary.empty() ? nullptr : own.dictionary.data();
  array.release = release_array;
  array.private_data = owner.release();
  count_alive(1);
  return array;
}

ArrowSchema make_schema(SchemaParts parts) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->parts = std::move(parts);
  SchemaParts& own = owner->parts;
  owner->children = addresses(own.children);
  if (!own.metadata.empty()) owner->metadata = encode(own.metadata);
  ArrowSchema schema{};
  schema.format = own.format.c_str();
  schema.name = own.name.c_str();
  schema.metadata = own.metadata.empty() ? nullptr : owner->metadata.data();
  schema.flags = own.nullable ? ARROW_FLAG_NULLABLE : 0;
  schema.n_children = static_cast<std::int64_t>(own.children.size());
  schema.children = own.children.empty() ? nullptr : owner->children.data();
  schema.dictionary = own.dictionary.empty() ? nullptr : own.dictionary.data();
  schema.release = release_schema;
  schema.private_data = owner.release();
  count_alive(1);
  return schema;
}

std::int64_t alive() { return g_alive.load(std::memory_order_relaxed); }
void count_alive(std::int64_t change) { g_alive.fetch_add(change, std::memory_order_relaxed); }

}  // namespace stepscope::capi
