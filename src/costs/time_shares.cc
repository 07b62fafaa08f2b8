#include "costs/time_shares.h"

#include <algorithm>

#include "base/key_index.h"
#include "base/name_verdicts.h"
#include "model/op_calls.h"

namespace stepscope::costs {
namespace {

class Adder {
 public:
  Adder(TimeShares& out, const Products& products) : out_(out), products_(products) {}

  // `slice`: the innermost operator; `name`: what to call it where it is not counted.
  void add(SliceId slice, StringId name, std::int64_t time_ns) {
    const auto at = static_cast<std::size_t>(slice);
    const Known known = slice == SliceId::none ? Known::nothing : products_.known[at];
    out_.time_ns[static_cast<std::size_t>(known)] += time_ns;
    if (known == Known::counted || known == Known::not_run) return;
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(name)} << 8 | static_cast<std::uint8_t>(known);
    const std::uint32_t row = rows_[key];
    if (row == out_.uncounted.size()) out_.uncounted.push_back({.name = name, .why = known});
    out_.uncounted[row].calls++;
    out_.uncounted[row].time_ns += time_ns;
  }

 private:
  TimeShares& out_;
  const Products& products_;
  KeyIndex rows_;
};

// cuBLAS and CUTLASS name what their tensor cores multiply: "tf32f32", and "s1688" for the instruction.
std::uint8_t takes_tfloat32(std::string_view kernel) {
  return kernel.find("tf32") != kernel.npos || kernel.find("s1688gemm") != kernel.npos ? 1 : 0;
}

void add_kernels(const Trace& trace, const Products& products, TimeShares& out) {
  Adder adder(out, products);
  NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)> tensor_cores(trace.strings, 2, takes_tfloat32);
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    if (!computes(trace, row)) continue;
    const SliceId kernel = trace.device.slice[row], op = trace.device.op[row];
    const std::int64_t time_ns = trace.slices.dur_ns[kernel];
    const bool known = op != SliceId::none && products.known[static_cast<std::size_t>(op)] != Known::nothing;
    adder.add(known ? op : SliceId::none, trace.slices.name[known ? op : kernel], time_ns);
    if (!known) continue;
    const std::uint32_t product = products.product_at[static_cast<std::size_t>(op)];
    if (product == Products::none) continue;
    out.product_ns[product] += time_ns;
    if (tensor_cores(trace.slices.name[kernel]) == 1) out.on_tensor_cores[product] = true;
  }
}

void add_operators(const Trace& trace, const Products& products, TimeShares& out) {
  Adder adder(out, products);
  const OpCalls calls = op_calls(trace);
  for (std::size_t op = 0; op < calls.size(); op++) {
    const SliceId slice = calls.slice[op];
    adder.add(slice, trace.slices.name[slice], calls.host_self_ns[op]);
  }
  for (std::size_t i = 0; i < products.all.size(); i++) {
    out.product_ns[i] = trace.slices.dur_ns[products.all[i].slice];
  }
}

}  // namespace

bool computes(const Trace& trace, std::size_t device_row) {
  const auto what = static_cast<DeviceClass>(trace.device.device_class[device_row]);
  return trace.kind(trace.device.slice[device_row]) == SliceKind::kernel &&
         (what == DeviceClass::compute || what == DeviceClass::unclassified);
}

TimeShares time_shares(const Trace& trace, const Products& products) {
  TimeShares out;
  out.product_ns.assign(products.all.size(), 0);
  out.on_tensor_cores.assign(products.all.size(), false);
  for (std::size_t row = 0; row < trace.device.size() && !out.device; row++) {
    out.device = is_device_work(trace.kind(trace.device.slice[row]));
  }
  if (out.device) {
    add_kernels(trace, products, out);
  } else {
    add_operators(trace, products, out);
  }
  std::stable_sort(out.uncounted.begin(), out.uncounted.end(),
                   [](const Uncounted& a, const Uncounted& b) { return a.time_ns > b.time_ns; });
  return out;
}

}  // namespace stepscope::costs
