#include "read/rocprof_json/names.h"

#include <algorithm>

namespace stepscope::read::rocprof {
namespace {

template <class Map>
const typename Map::mapped_type* found(const Map& map, std::int64_t key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

std::int64_t known(const Field& field) { return std::max<std::int64_t>(0, integer(field)); }

// Code objects name a kernel by its descriptor: "gemm.kd", "gemm() [clone .kd]".
std::string_view without_descriptor(std::string_view name) {
  for (const std::string_view suffix : {" [clone .kd]", ".kd"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = 1 << 20;  // no device has so many of anything that is multiplied here
  return a > 0 && b > 0 && a < kMost && b < kMost ? a * b : 0;
}

std::int64_t memory_of(const Record& agent) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  std::int64_t bytes = 0;
  simdjson::dom::array banks;
  if (agent["mem_banks"].get(banks) != simdjson::SUCCESS) return 0;
  for (const Record bank : banks) bytes = std::min(kMost, bytes + std::min(kMost, known(bank["size_in_bytes"])));
  return bytes;
}

}  // namespace

void Names::add_kind(const Record& kind) {
  Kind& added = kinds_.emplace_back();
  added.name = keep(words(kind["kind"]));
  simdjson::dom::array operations;
  if (kind["operations"].get(operations) != simdjson::SUCCESS) return;
  for (const Field operation : operations) added.operations.push_back(keep(words(operation)));
}

void Names::add_marker(const Record& message) {
  const std::int64_t correlation = integer(message["key"]);
  if (correlation != kAbsent) markers_[correlation] = keep(words(message["value"]));
}

// The formatted name is the one that the user asked for: demangled, or with --mangled-kernels as the code object has
// it.
void Names::add_kernel(const Record& symbol) {
  const std::int64_t id = integer(symbol["kernel_id"]);
  if (id == kAbsent) return;
  Kernel kernel;
  for (const char* key : {"formatted_kernel_name", "demangled_kernel_name", "kernel_name", "truncated_kernel_name"}) {
    if (kernel.name.empty()) kernel.name = keep(without_descriptor(words(symbol[key])));
  }
  const std::int64_t registers = known(symbol["arch_vgpr_count"]), more = known(symbol["accum_vgpr_count"]);
  if (registers > 0 && registers < 1 << 16 && more < 1 << 16) kernel.registers = registers + more;
  kernels_[id] = kernel;
}

void Names::add_counter(const Record& counter) {
  const std::int64_t handle = integer(counter["id"]);
  if (handle != kAbsent) counters_[handle] = keep(words(counter["name"]));
}

void Names::add_agent(const Record& agent) {
  const std::int64_t handle = integer(agent["id"]);
  const std::int64_t type = integer(agent["type"]);
  Agent added;
  added.gpu = type == 2 || words(agent["type"]) == "GPU";
  if (added.gpu) {
    DeviceInfo& info = added.info;
    const std::int64_t number = integer(agent["logical_node_type_id"]);  // older tools do not give it
    info.id = number >= 0 ? number : gpus_;
    gpus_++;
    const std::string_view product_name = words(agent["product_name"]);
    info.name = product_name.empty() ? words(agent["name"]) : product_name;
    info.sm_count = known(agent["cu_count"]);
    info.warp_size = known(agent["wave_front_size"]);
    info.max_threads_per_sm =
        product(product(known(agent["max_waves_per_simd"]), known(agent["simd_per_cu"])), info.warp_size);
    info.memory_bytes = memory_of(agent);
    const std::int64_t target = known(agent["gfx_target_version"]);  // 90402: gfx942
    info.compute_major = target / 10000;
    info.compute_minor = target / 100 % 100;
  }
  if (handle != kAbsent) agents_[handle] = std::move(added);
}

const Names::Kind* Names::kind_of(const Record& record) const {
  const std::int64_t number = integer(record["kind"]);
  return number >= 0 && static_cast<std::size_t>(number) < kinds_.size() ? &kinds_[static_cast<std::size_t>(number)]
                                                                         : nullptr;
}

std::string_view Names::kind(const Record& record) const {
  if (const std::string_view told = words(record["kind"]); !told.empty()) return told;
  const Kind* kind = kind_of(record);
  return kind == nullptr ? std::string_view() : kind->name;
}

std::string_view Names::operation(const Record& record) const {
  if (const std::string_view told = words(record["operation"]); !told.empty()) return told;
  const Kind* kind = kind_of(record);
  const std::int64_t number = integer(record["operation"]);
  if (kind == nullptr || number < 0 || static_cast<std::size_t>(number) >= kind->operations.size()) return {};
  return kind->operations[static_cast<std::size_t>(number)];
}

std::string_view Names::marker(std::int64_t correlation) const {
  const auto* message = found(markers_, correlation);
  return message == nullptr ? std::string_view() : *message;
}

std::string_view Names::counter(std::int64_t handle) const {
  const auto* name = found(counters_, handle);
  return name == nullptr ? std::string_view() : *name;
}

const Kernel* Names::kernel(std::int64_t id) const { return found(kernels_, id); }
const Agent* Names::agent(std::int64_t handle) const { return found(agents_, handle); }

}  // namespace stepscope::read::rocprof
