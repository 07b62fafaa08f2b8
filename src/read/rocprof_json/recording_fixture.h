// RecordingFixture: one process of rocprofv3's JSON, made record by record in the schema of two releases of
// rocprofiler-sdk: 0.4 (ROCm 6.2, the oldest with JSON: no streams, no ancestors, no calls of RCCL, registers beside
// the counters) and 1.0 (ROCm 7.0 and 7.1). Not part of the program.
//
//   RecordingFixture f(Release::rocm7);
//   f.hip("hipLaunchKernel", 100, 110, 5);
//   f.kernel(150, 250, 5);
//   const std::vector<Trace> traces = f.read();
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/temp_fixture.h"
#include "read/reader.h"

namespace stepscope::read {

enum class Release { rocm62, rocm7 };

struct RecordingFile : TempFile {
  explicit RecordingFile(std::string_view text) : TempFile(text, "1_results.json") {}
  Result<std::vector<Trace>> read(const ReadOptions& options = {}) const {
    return reader_named("rocprof_json")->read(path(), options);
  }
};

class RecordingFixture {
 public:
  static constexpr int kCpu = 100, kGpu0 = 101, kGpu1 = 102;  // handles of agents
  static constexpr std::int64_t kPid = 4242;

  explicit RecordingFixture(Release release = Release::rocm7) : release_(release) {}

  std::string metadata =
      R"("pid": 4242, "init_time": 1, "fini_time": 1000000, "command": ["/usr/bin/python3", "t.py"],)"
      R"( "node": {"id": 1, "hostname": "node1"})";
  std::vector<std::string> kernels{"", "_Z4gemmPf.kd|gemm(float*)",
                                   "ncclDevKernel_AllReduce.kd|ncclDevKernel_AllReduce"};

  void record(const std::string& table, const std::string& text) { tables_[table].push_back("{" + text + "}"); }
  void hip(const std::string& call, std::int64_t start, std::int64_t end, std::int64_t id, std::int64_t tid = kPid) {
    record("hip_api",
           api(call.starts_with("__") ? "HIP_COMPILER_API" : "HIP_RUNTIME_API", call, start, end, id, 0, tid));
  }
  void hsa(const std::string& call, std::int64_t start, std::int64_t end, std::int64_t id, std::int64_t ancestor = 0) {
    record("hsa_api", api("HSA_AMD_EXT_API", call, start, end, id, ancestor, kPid));
  }
  void rccl(const std::string& call, std::int64_t start, std::int64_t end, std::int64_t id) {
    record("rccl_api", api("RCCL_API", call, start, end, id, 0, kPid));
  }
  void marker(const std::string& call, const std::string& message, std::int64_t start, std::int64_t end,
              std::int64_t id) {
    if (!message.empty()) messages_.push_back(R"({"key": )" + std::to_string(id) + R"(, "value": ")" + message + "\"}");
    record("marker_api", api(is_new() && call.find("Range") != call.npos ? "MARKER_CORE_RANGE_API" : "MARKER_CORE_API",
                             call, start, end, id, 0, kPid));
  }
  std::string dispatch(std::int64_t kernel_id, std::int64_t dispatch_id, int agent, std::int64_t queue) const {
    return R"("dispatch_info": {"size": 72, "agent_id": {"handle": )" + std::to_string(agent) +
           R"(}, "queue_id": {"handle": )" + std::to_string(queue) + R"(}, "kernel_id": )" + std::to_string(kernel_id) +
           R"(, "dispatch_id": )" + std::to_string(dispatch_id) +
           R"(, "private_segment_size": 0, "group_segment_size": 2048, "workgroup_size": {"x": 256, "y": 2, "z": 1},)"
           R"( "grid_size": {"x": 1000, "y": 8, "z": 1}})";
  }
  void kernel(std::int64_t start, std::int64_t end, std::int64_t id, std::int64_t kernel_id = 1,
              std::int64_t stream = 3, int agent = kGpu0, std::int64_t queue = 7) {
    record("kernel_dispatch", kind("KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE") + R"("thread_id": 4242, )" +
                                  correlation(id) + times(start, end) +
                                  dispatch(kernel_id, ++dispatches_, agent, queue) + in_stream(stream));
  }
  void counters(std::int64_t start, std::int64_t end, std::int64_t id, std::int64_t dispatch_id,
                const std::string& values) {
    record("counter_collection",
           R"("thread_id": 4242, "dispatch_data": {"size": 1, )" + correlation(id) +
               (is_new() ? times(start, end) : "") + dispatch(1, dispatch_id, kGpu0, 7) + R"(}, "records": [)" +
               values + "]" +
               (is_new() ? in_stream(3) : R"(, "arch_vgpr_count": 8, "sgpr_count": 32, "lds_block_size_v": 0)"));
  }
  void copy(const std::string& direction, std::int64_t start, std::int64_t end, std::int64_t id, int from, int to,
            std::int64_t bytes) {
    record("memory_copy", kind("MEMORY_COPY", (is_new() ? "MEMORY_COPY_" : "") + direction) + R"("thread_id": 4242, )" +
                              correlation(id) + times(start, end) + R"("dst_agent_id": {"handle": )" +
                              std::to_string(to) + R"(}, "src_agent_id": {"handle": )" + std::to_string(from) +
                              R"(}, "bytes": )" + std::to_string(bytes) + in_stream(3));
  }
  void memory(const std::string& operation, std::int64_t start, int agent, const std::string& address,
              std::int64_t bytes) {
    record("memory_allocation", kind("MEMORY_ALLOCATION", "MEMORY_ALLOCATION_" + operation) + R"("thread_id": 4242, )" +
                                    correlation(0) + times(start, start + 10) + R"("agent_id": {"handle": )" +
                                    std::to_string(agent) + R"(}, "address": ")" + address +
                                    R"(", "allocation_size": )" + std::to_string(bytes) + in_stream(0));
  }
  void scratch(const std::string& operation, std::int64_t start, std::int64_t end) {
    record("scratch_memory", kind("SCRATCH_MEMORY", "SCRATCH_MEMORY_" + operation) +
                                 R"("agent_id": {"handle": 101}, "queue_id": {"handle": 7}, "thread_id": 4242, )" +
                                 times(start, end) + correlation(0) + R"("flags": 0)");
  }

  std::string process() const { return "{" + head() + ", " + names() + ", " + records() + "}"; }
  std::string head() const { return R"("metadata": {)" + metadata + R"(}, "agents": [)" + agents() + "]"; }
  std::string names() const {
    return R"("counters": [{"agent_id": {"handle": 101}, "id": {"handle": 55}, "name": "SQ_WAVES"}], "strings": {)"
           R"("callback_records": [], "buffer_records": [)" +
           kinds() + R"(], "marker_api": [)" + joined(messages_) + R"(], "counters": {"dimension_ids": []}},)" +
           R"( "code_objects": [{"size": 0}], "kernel_symbols": [)" + symbols() + R"(], "host_functions": [])";
  }
  std::string records() const {
    std::string buffers;
    for (const auto& [table, rows] : tables_) {
      if (table == "counter_collection") continue;
      buffers += (buffers.empty() ? "\"" : ", \"") + table + "\": [" + joined(rows) + "]";
    }
    const auto counted = tables_.find("counter_collection");
    return R"("summary": [], "callback_records": {"counter_collection": [)" +
           (counted == tables_.end() ? "" : joined(counted->second)) + R"(]}, "buffer_records": {)" + buffers + "}";
  }
  static std::string file(const std::vector<std::string>& processes) {
    return R"({"rocprofiler-sdk-tool": [)" + joined(processes) + "]}";
  }
  std::string text() const { return file({process()}); }
  std::vector<Trace> read() const {
    auto traces = RecordingFile(text()).read();
    REQUIRE_MESSAGE(traces, to_text(traces.error()));
    return *std::move(traces);
  }

 private:
  struct Kind {
    std::string name;
    std::vector<std::string> operations;
  };

  bool is_new() const { return release_ == Release::rocm7; }
  // Numbers differ between the releases, so that a reader that knows them by heart fails.
  std::vector<Kind> all_kinds() const {
    std::vector<Kind> all{
        {"NONE", {}},
        {"HSA_AMD_EXT_API", {"hsa_amd_coherency_get_type", "hsa_amd_memory_async_copy_on_engine"}},
        {"HIP_RUNTIME_API",
         {"hipApiName", "hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch",
          "hipMemcpyAsync", "hipMalloc", "hipDeviceSynchronize"}},
        {"HIP_COMPILER_API", {"__hipPopCallConfiguration", "__hipPushCallConfiguration"}},
        {"MARKER_CORE_API",
         {"roctxMarkA", "roctxRangePushA", "roctxRangePop", "roctxRangeStartA", "roctxRangeStop", "roctxGetThreadId"}},
        {"KERNEL_DISPATCH", {"KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"}},
        {"SCRATCH_MEMORY", {"SCRATCH_MEMORY_NONE", "SCRATCH_MEMORY_ALLOC", "SCRATCH_MEMORY_FREE"}}};
    if (!is_new()) {
      all.push_back({"MEMORY_COPY", {"NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"}});
      return all;
    }
    all.insert(all.begin() + 1, {"HSA_CORE_API", {"hsa_init"}});
    all.push_back({"RCCL_API", {"ncclAllGather", "ncclAllReduce"}});
    all.push_back({"MEMORY_COPY",
                   {"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE",
                    "MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE"}});
    all.push_back({"MEMORY_ALLOCATION",
                   {"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_VMEM_ALLOCATE",
                    "MEMORY_ALLOCATION_FREE", "MEMORY_ALLOCATION_VMEM_FREE"}});
    all.push_back({"MARKER_CORE_RANGE_API", {"roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"}});
    return all;
  }
  // "kind" and "operation" of a record, by their place in the tables; an operation that is not listed gets a wild
  // number.
  std::string kind(const std::string& name, const std::string& operation) const {
    const std::vector<Kind> all = all_kinds();
    std::size_t at = 0, number = 999;
    while (at < all.size() && all[at].name != name) at++;
    REQUIRE_MESSAGE(at < all.size(), name);
    for (std::size_t i = 0; i < all[at].operations.size(); i++) {
      if (all[at].operations[i] == operation) number = i;
    }
    return R"("size": 64, "kind": )" + std::to_string(at) + R"(, "operation": )" + std::to_string(number) + ", ";
  }
  std::string correlation(std::int64_t id, std::int64_t ancestor = 0) const {
    return R"("correlation_id": {"internal": )" + std::to_string(id) + R"(, "external": 0)" +
           (is_new() && ancestor > 0 ? R"(, "ancestor": )" + std::to_string(ancestor) : "") + "}, ";
  }
  static std::string times(std::int64_t start, std::int64_t end) {
    return R"("start_timestamp": )" + std::to_string(start) + R"(, "end_timestamp": )" + std::to_string(end) + ", ";
  }
  std::string in_stream(std::int64_t stream) const {
    return is_new() ? R"(, "stream_id": {"handle": )" + std::to_string(stream) + "}" : "";
  }
  std::string api(const std::string& kind_name, const std::string& call, std::int64_t start, std::int64_t end,
                  std::int64_t id, std::int64_t ancestor, std::int64_t tid) const {
    return kind(kind_name, call) + correlation(id, ancestor) + times(start, end) + R"("thread_id": )" +
           std::to_string(tid);
  }
  std::string agents() const {
    const auto gpu = [&](int handle, int number) {
      return R"(, {"id": {"handle": )" + std::to_string(handle) +
             R"(}, "type": 2, "cu_count": 256, "simd_per_cu": 4, "max_waves_per_simd": 8, "wave_front_size": 64,)"
             R"( "gfx_target_version": 90402, "name": "gfx942", "product_name": "AMD Instinct MI300X",)"
             R"( "hive_id": 17332996360099338395, "mem_banks": [{"size_in_bytes": 205822885888}])" +
             (is_new() ? R"(, "logical_node_type_id": )" + std::to_string(number) : "") + "}";
    };
    return R"({"id": {"handle": 100}, "type": 1, "name": "CPU"})" + gpu(kGpu0, 0) + gpu(kGpu1, 1);
  }
  std::string kinds() const {
    std::vector<std::string> texts;
    for (const Kind& each : all_kinds()) {
      std::vector<std::string> quoted;
      for (const std::string& operation : each.operations) quoted.push_back("\"" + operation + "\"");
      texts.push_back(R"({"kind": ")" + each.name + R"(", "operations": [)" + joined(quoted) + "]}");
    }
    return joined(texts);
  }
  std::string symbols() const {
    std::vector<std::string> texts;
    for (std::size_t id = 0; id < kernels.size(); id++) {
      const std::size_t bar = kernels[id].find('|');
      texts.push_back(
          R"({"kernel_id": )" + std::to_string(id) + R"(, "kernel_name": ")" + kernels[id].substr(0, bar) +
          (bar == std::string::npos ? "" : R"(", "formatted_kernel_name": ")" + kernels[id].substr(bar + 1)) + "\"" +
          (is_new() ? R"(, "sgpr_count": 96, "arch_vgpr_count": 20, "accum_vgpr_count": 4)" : "") + "}");
    }
    return joined(texts);
  }
  static std::string joined(const std::vector<std::string>& texts) {
    std::string out;
    for (const std::string& each : texts) out += (out.empty() ? "" : ",\n ") + each;
    return out;
  }

  Release release_;
  std::map<std::string, std::vector<std::string>> tables_;
  std::vector<std::string> messages_;
  std::int64_t dispatches_ = 0;
};

}  // namespace stepscope::read
