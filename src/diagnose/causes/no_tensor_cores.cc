// Products of float32 in plain arithmetic, where tensor cores take float32 as TF32, or bfloat16, several times as fast.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "costs/cost_tables.h"
#include "costs/ideal.h"
#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/kernel_groups.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {
namespace {

// Of a device that no data sheet is known of: tensor cores do eight times as much of TF32 a second, or more; what is
// left is bound by memory, and small products gain least.
constexpr double kLeastLeftOfFloat32 = 0.2, kMostLeftOfFloat32 = 0.7;
// Nearer to their peak, and further from it, than plain float32 is to its own.
constexpr double kNearer = 1, kFurther = 2;
constexpr std::int64_t kFirstWithTensorCores = 7, kFirstWithTf32 = 8;  // compute capability

// Marks in the names of libraries' kernels that multiply float32 one by one: the routine (SGEMM), the instruction
// (FFMA), "SIMT" for what uses no matrix unit, and the three types of an operand, a product and a sum.
bool multiplies_plain_float32(std::string_view kernel) {
  constexpr std::array<std::string_view, 6> kMarks{"sgemm", "ffma", "f32f32_f32f32", "scudnn", "simt_s", "gemmSN"};
  if (uses_tensor_cores(kernel) || kernel.find("tf32") != kernel.npos) return false;
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](std::string_view mark) { return kernel.find(mark) != kernel.npos; });
}

bool is_product_kernel(const ClassRule* rule) {
  return rule != nullptr && (rule->family == "GEMM" || rule->family == "grouped GEMM" || rule->family == "convolution");
}

// What tensor cores leave of such a product, between these two.
std::pair<double, double> left_by_tensor_cores(const Case& about) {
  const std::pair known_little{kLeastLeftOfFloat32, kMostLeftOfFloat32};
  const auto tables = costs::cost_tables(about.run);
  if (!tables) return known_little;
  const costs::DevicePeaks* peaks = costs::rank_peaks(about.trace, tables->peaks).peaks;
  if (peaks == nullptr) return known_little;
  const auto plain = peaks->flop_per_s("float32"), tensor = peaks->flop_per_s("tfloat32");
  if (!plain || !tensor || *tensor <= *plain) return known_little;
  return {std::min(1.0, kNearer * *plain / *tensor), std::min(1.0, kFurther * *plain / *tensor)};
}

void find_plain_products(const Case& about, std::vector<Diagnosis>& out) {
  const std::int64_t capability = least_capability(about.trace);
  if (capability > 0 && capability < kFirstWithTensorCores) return;
  Gathered gathered(about);
  std::int64_t plain_ns = 0, products_ns = 0;
  const auto [least, most] = left_by_tensor_cores(about);
  for (const std::uint32_t node : device_work(about).nodes(DeviceClass::compute)) {
    const Work work = about.work(node);
    if (!is_product_kernel(rule_of(*work.trace, about.predictor.graph().row[node]))) continue;
    products_ns += work.cost_ns;
    if (!multiplies_plain_float32(work.name())) continue;
    plain_ns += work.cost_ns;
    gathered.add(node, work, asker_name(about, node, work), least, most);
  }
  if (!gathered.worth_saying()) return;
  out.push_back(gathered.diagnosis(
      {.cause = "precision",
       .sentence = "Matrix products of float32 leave the tensor cores idle",
       .next =
           capability > 0 && capability < kFirstWithTf32
               ? "torch.autocast(\"cuda\", dtype=torch.float16) with a GradScaler: this device has no TF32"
               : "torch.set_float32_matmul_precision(\"high\") (TF32), and torch.backends.cudnn.allow_tf32 = True for "
                 "convolutions; or torch.autocast(\"cuda\", dtype=torch.bfloat16)",
       .doubt = capability > 0 ? "" : "what the device can do is not recorded"}));
  auto& evidence = out.back().finding.evidence;
  evidence.push_back({.text = "Of the time of matrix products",
                      .value = static_cast<double>(plain_ns) / static_cast<double>(products_ns),
                      .unit = Unit::ratio});
  const std::string_view set = setting(about.trace, "float32_matmul");
  if (!set.empty()) evidence.push_back({.text = "float32 matmul precision is " + std::string(set), .value = Value()});
}

}  // namespace

Cause no_tensor_cores_cause() { return {"no_tensor_cores", "Products without tensor cores", find_plain_products}; }

}  // namespace stepscope::diagnose::causes
