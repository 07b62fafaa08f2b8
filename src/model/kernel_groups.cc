#include "model/kernel_groups.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/key_index.h"

namespace stepscope {
namespace {

const DeviceInfo* info_of(const Trace& trace, std::uint32_t row) {
  const std::int32_t device = trace.device.device[row];
  for (const DeviceInfo& info : trace.devices) {
    if (info.id == device) return &info;
  }
  return trace.devices.size() == 1 && device < 0 ? &trace.devices.front() : nullptr;
}

std::uint64_t product(const Column<std::uint32_t> (&sizes)[3], std::uint32_t row) {
  std::uint64_t out = 1;
  for (const auto& size : sizes) {
    if (size[row] == 0 || out > (std::uint64_t{1} << 40)) return 0;  // not given, or nonsense
    out *= size[row];
  }
  return out;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
}

std::uint64_t key_of(const Trace& trace, std::uint32_t row, KernelKey key) {
  const std::uint64_t rule = trace.device.rule[row];
  if (key == KernelKey::rule) return rule;
  const std::uint64_t name = static_cast<std::uint32_t>(trace.slices.name[trace.device.slice[row]]);
  const std::uint64_t named = name << 16 | rule;
  if (key == KernelKey::name) return named;
  std::uint64_t out = named;  // a 64-bit hash: two variants of one kernel meet with odds of 2^-64
  for (const auto& size : trace.device.grid) out = mix(out, size[row]);
  for (const auto& size : trace.device.block) out = mix(out, size[row]);
  return mix(mix(out, trace.device.registers[row]), trace.device.shared_bytes[row]);
}

}  // namespace

std::optional<double> blocks_per_sm(const Trace& trace, std::uint32_t row) {
  const float recorded = trace.device.blocks_per_sm[row];
  if (std::isfinite(recorded)) return recorded;
  const DeviceInfo* info = info_of(trace, row);
  const std::uint64_t blocks = product(trace.device.grid, row);
  if (info == nullptr || info->sm_count <= 0 || blocks == 0) return std::nullopt;
  return static_cast<double>(blocks) / static_cast<double>(info->sm_count);
}

std::optional<double> occupancy(const Trace& trace, std::uint32_t row) {
  const float recorded = trace.device.occupancy_percent[row];
  if (std::isfinite(recorded)) return recorded / 100;
  const DeviceInfo* info = info_of(trace, row);
  const auto blocks = blocks_per_sm(trace, row);
  const std::uint64_t threads = product(trace.device.block, row);
  if (info == nullptr || info->max_threads_per_sm <= 0 || !blocks || threads == 0) return std::nullopt;
  return std::min(1.0, *blocks * static_cast<double>(threads) / static_cast<double>(info->max_threads_per_sm));
}

std::vector<KernelGroup> kernel_groups(const Trace& trace, const std::vector<std::uint32_t>& rows, KernelKey key) {
  KeyIndex index;
  std::vector<KernelGroup> groups;
  for (const std::uint32_t row : rows) {
    const std::uint32_t at = index[key_of(trace, row, key)];
    const std::int64_t duration = trace.slices.dur_ns[trace.device.slice[row]];
    if (at == groups.size()) groups.push_back({.example = row, .min_ns = duration, .max_ns = duration});
    KernelGroup& group = groups[at];
    group.count++;
    group.total_ns += duration;
    group.min_ns = std::min(group.min_ns, duration);
    group.max_ns = std::max(group.max_ns, duration);
    if (const auto blocks = blocks_per_sm(trace, row)) group.blocks_per_sm.add(*blocks, duration);
    if (const auto busy = occupancy(trace, row)) group.occupancy.add(*busy, duration);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const KernelGroup& a, const KernelGroup& b) { return a.total_ns > b.total_ns; });
  return groups;
}

const ClassRule* rule_of(const Trace& trace, std::uint32_t row) {
  const std::uint16_t rule = trace.device.rule[row];
  return rule > 0 && rule < trace.class_rules.size() ? &trace.class_rules[rule] : nullptr;
}

bool uses_tensor_cores(std::string_view name) {
  // Marks that libraries leave in the names of matrix-unit kernels: the instruction's tile (h884, s1688, 16816 …), the
  // instruction itself (hmma, imma, wgmma, mfma), or a generator that only makes such kernels (nvjet, flash attention's
  // main loops; what runs before and after them multiplies nothing). 8-bit floats multiply in no other unit.
  static constexpr std::array marks{
      "884gemm",
      "_h884",
      "_s884",
      "1688",
      "16816",
      "8816",
      "hmma",
      "imma",
      "gmma",
      "qmma",
      "tensorop",
      "tensor_op",
      "nvjet",
      "flash_fwd",
      "flash_bwd",
      "fmha_",
      "CollectiveMainloop",
      "deep_gemm",
      "mfma",
      "MFMA",
      "_MI16x16",
      "_MI32x32",
      "_MI4x4",
      "xmma_gemm_f16f16",
      "xmma_gemm_bf16",
      "cublasLtGemm_fp8",
      "marlin",
  };
  const auto has = [&](std::string_view mark) { return name.find(mark) != std::string_view::npos; };
  return std::any_of(marks.begin(), marks.end(), has) || (has("GemmKernel") && has("fp8"));
}

}  // namespace stepscope
