// Payloads of NVTX events: bytes whose fields the export itself describes (NVTX_PAYLOAD_SCHEMA_ENTRIES).
//
// NCCL tells its communicator, message size and ranks this way. nsys leaves the bytes out unless it is asked for them
// (nsys export --include-blobs=true). Layout of the bytes: domain and schema as 8-byte ids, two sizes, then the fields.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/nsys_sqlite/export.h"

namespace stepscope::read::nsys {

struct PayloadField {
  std::string_view name;  // as long as the schemas live
  std::string text;       // the value; enums by their name where it is known
  std::int64_t number = kAbsent;
};

class PayloadSchemas {
 public:
  explicit PayloadSchemas(Export& file);
  bool empty() const { return schemas_.empty(); }
  // The domains for which NCCL described its payloads.
  bool is_nccl(std::int64_t domain) const;
  // Empty: no schema fits these bytes.
  std::vector<PayloadField> decode(std::string_view bytes) const;

 private:
  struct Entry {
    std::int64_t type = 0;
    std::int64_t offset = 0;
    std::string name;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  // domain, schema
  std::map<Key, std::map<std::int64_t, Entry>> schemas_;
  std::map<Key, std::map<std::int64_t, std::string>> enums_;
};

// The value of a field by its name; kAbsent: there is none.
std::int64_t field(const std::vector<PayloadField>& fields, std::string_view name);

}  // namespace stepscope::read::nsys
