// What torch.compile writes into a recording, by name: compilations and their stages, compiled regions, graphs, and the
// operators that a fused kernel came from. As torch 2.13 writes them; older names of the same things are known too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepscope {

// "0/1": the second compilation of the first frame.
struct CompileId {
  std::int64_t frame = 0, attempt = 0;
};

bool is_frame_compile(std::string_view name);     // the compilation of one frame, whole
bool is_backward_compile(std::string_view name);  // of its backward pass, when that is first needed
std::string_view compile_stage(
    std::string_view name);  // "GraphLowering.run (dynamo_timed)" → "GraphLowering.run", or ""
std::string_view compiled_region(std::string_view name);  // "Torch-Compiled Region: 0/1" → "0/1", or ""
std::string_view compiled_graph(std::string_view name);   // "## Call CompiledFxGraph HASH ##" → "HASH", or ""
// From "entire_frame_compile_data: …, compile_id=0/1", which stands inside the compilation.
std::optional<CompileId> frame_compile_id(std::string_view name);
std::optional<CompileId> backward_compile_id(std::string_view name);

struct FusedKernel {
  std::string_view kind;  // "pointwise", "reduction" …
  std::string ops;        // "add, native_layer_norm"
};
// "triton_poi_fused_add_native_layer_norm_3", "cpp_fused_relu_0"; nothing for other kernels.
std::optional<FusedKernel> fused_kernel(std::string_view name);

}  // namespace stepscope
