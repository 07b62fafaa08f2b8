// What allocations are for: each kind of evidence, and none.
#include "snapshot/classes.h"

#include <doctest/doctest.h>

#include "snapshot/history.h"
#include "snapshot/marks.h"
#include "snapshot/snapshot_fixture.h"
#include "snapshot/stack_text.h"

namespace stepscope::snapshot {
namespace {

using snapshot_fixture::Builder;
using snapshot_fixture::Frame;

constexpr Frame kMain{"/home/me/train.py", "main", 9};
constexpr Frame kCall{"/v/site-packages/torch/nn/modules/module.py", "_call_impl", 1773};
constexpr Frame kForward{"/home/me/model.py", "forward", 30};
constexpr Frame kEngine{"??",
                        "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)", 0};

// "CATEGORY (CLASS): EVIDENCE" of the allocation that event made.
std::string found(const AllocatorHistory& history, std::uint32_t event) {
  const MemoryClass& one = history.classes[history.allocations.of_class[history.allocation_of_event[event]]];
  return std::string(to_string(one.category)) + " (" + one.name + "): " + one.evidence;
}

std::string found_alone(std::initializer_list<Frame> frames, std::int64_t bytes = 4096) {
  Builder b;
  const std::uint32_t event = b.alloc(4096, bytes, b.stack(frames));
  return found(history_of(b.done()), event);
}

}  // namespace

TEST_CASE("classes: by stack") {
  CHECK(found_alone({{"/v/site-packages/torch/optim/adamw.py", "_init_group", 120}, kMain}) ==
        "optimizer state (optimizer state): stack: torch.optim _init_group");
  CHECK(found_alone({{"/v/site-packages/torch/nn/modules/module.py", "convert", 1}, kMain}) ==
        "parameter (parameter): stack: Module.to and the like");
  CHECK(found_alone({{"/v/site-packages/torch/distributed/distributed_c10d.py", "all_gather_into_tensor", 1},
                     kForward,
                     kCall,
                     kMain}) == "communication (communication): stack: torch.distributed");
  CHECK(found_alone({{"/v/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather", 1},
                     kCall}) == "communication (communication): stack: FSDP all-gather");
  CHECK(found_alone({{"??", "c10d::Reducer::initialize_buckets(std::vector<int>)", 0}, kMain}) ==
        "communication (communication): stack: buckets of DistributedDataParallel");
  CHECK(found_alone({{"", "at::cuda::getCurrentCUDABlasHandle()", 0}, kForward, kCall, kMain}) ==
        "workspace (workspace): stack: cuBLAS workspace");
  CHECK(found_alone({{"/v/torch/utils/data/_utils/collate.py", "default_collate", 1}, kMain}) ==
        "input (input): stack: torch.utils.data");
  CHECK(found_alone({{"", "torch::autograd::THPVariable_to(_object*, _object*, _object*)", 0}, kMain}) ==
        "input (input): stack: Tensor.to outside of modules");
  // The same within a module's forward is a cast.
  CHECK(found_alone({{"", "torch::autograd::THPVariable_to(_object*, _object*, _object*)", 0}, kForward, kCall, kMain})
            .starts_with("activation"));
  CHECK(found_alone({{"/home/me/model.py", "__init__", 3}, kMain}) ==
        "parameter (parameter): stack: a constructor; never freed");
  CHECK(found_alone({kMain}) == "unknown (unknown): ");
  CHECK(found_alone({}) == "unknown (unknown): ");
  CHECK(found_alone({kMain}, 8'519'680) == "workspace (workspace): size of torch's cuBLAS workspace; never freed");
}

TEST_CASE("classes: by lifetime between the passes") {
  Builder b;
  const StackId forward = b.stack({kForward, kCall, kMain}), backward = b.stack({kEngine}),
                step = b.stack(
                    {{"/home/me/optimizers.py", "step", 5}, {"/v/torch/optim/optimizer.py", "wrapper", 1}, kMain}),
                main = b.stack({kMain}), zero = b.stack({{"/v/torch/optim/optimizer.py", "zero_grad", 1}, kMain});
  const auto kept = b.alloc(0x1000, 512, forward);
  const auto gone = b.alloc(0x2000, 512, forward);
  b.free(0x2000, 512, forward);
  const auto loss = b.alloc(0x3000, 512, main);
  const auto gradient = b.alloc(0x4000, 512, backward);
  const auto passing = b.alloc(0x5000, 512, backward);
  b.free(0x5000, 512, backward);
  b.free(0x1000, 512, backward);
  b.free(0x3000, 512, backward);
  const auto freed_by_zero = b.alloc(0x6000, 512, backward);
  const auto again =
      b.alloc(0x7000, 512, b.stack({kForward, kCall, {"/v/torch/utils/checkpoint.py", "unpack_hook", 1}}));
  b.free(0x7000, 512, backward);
  const auto state = b.alloc(0x8000, 512, step);
  const auto scratch = b.alloc(0x9000, 512, step);
  b.free(0x9000, 512, step);
  b.free(0x6000, 512, zero);
  b.alloc(0xa000, 512, forward);
  const AllocatorHistory h = history_of(b.done());
  CHECK(found(h, kept) == "activation (activation): stack: a function forward; alive when the backward pass began");
  CHECK(found(h, gone) == "temporary (temporary): stack: a function forward; freed before the pass was over");
  CHECK(found(h, loss) == "activation (activation): lifetime: freed in the backward pass");
  CHECK(found(h, gradient) == "gradient (gradient): stack: the autograd engine; alive after the backward pass");
  CHECK(found(h, passing) == "temporary (temporary): stack: the autograd engine; freed before the pass was over");
  CHECK(found(h, freed_by_zero) == "gradient (gradient): stack: the autograd engine; freed by zero_grad");
  CHECK(found(h, again) == "activation (activation): stack: a function forward; run again in the backward pass");
  CHECK(found(h, state) ==
        "optimizer state (optimizer state): stack: an optimizer's step; alive after the optimizer's step");
  CHECK(found(h, scratch) == "temporary (temporary): stack: an optimizer's step; freed before the pass was over");
}

TEST_CASE("classes: ranges tell of passes that have no stack, and name what nothing else does") {
  Builder b;
  b.mark("backward", "START");
  b.mark("my range", "START");
  const auto gradient = b.alloc(0x1000, 512);
  b.mark("my range", "END");
  b.mark("backward", "END");
  b.mark("my range", "START");
  const auto within = b.alloc(0x2000, 512);
  b.mark("my range", "END");
  const auto outside = b.alloc(0x3000, 512);
  const AllocatorHistory h = history_of(b.done());
  CHECK(found(h, gradient) == "gradient (gradient): range: backward; alive after the backward pass");
  CHECK(found(h, within) == "unknown (range: my range): innermost range (record_function)");
  CHECK(found(h, outside) == "unknown (unknown): ");
}

TEST_CASE("classes: what the file says itself") {
  Builder b;
  const auto context = [&](std::string_view compiled, std::string_view note, std::string_view category,
                           std::uint32_t pool) {
    EventContext one;
    if (!compiled.empty()) one.compile_context = b.snapshot.strings.intern(compiled);
    if (!note.empty()) one.user_metadata = b.snapshot.strings.intern(note);
    if (!category.empty()) one.category = b.snapshot.strings.intern(category);
    one.pool = pool;
    b.snapshot.contexts.push_back(one);
    return static_cast<std::uint32_t>(b.snapshot.contexts.size() - 1);
  };
  b.snapshot.pools.push_back({0, 4});
  const auto alloc = [&](std::uint64_t address, std::uint32_t of) {
    return b.event(AllocatorAction::alloc, address, 512, StackId::none, of);
  };
  const auto compiled = alloc(0x1000, context("0/1", "ignored", "", 0));
  const auto noted = alloc(0x2000, context("N/A", "KV cache", "", 0));
  const auto profiled = alloc(0x3000, context("", "", "Category.GRADIENT", 0));
  const auto pooled = alloc(0x4000, context("N/A", "", "", 1));
  const AllocatorHistory h = history_of(b.done());
  CHECK(found(h, compiled) == "unknown (compiled: 0/1): compile context");
  CHECK(found(h, noted) == "unknown (note: KV cache): the job's own note (user_metadata)");
  CHECK(found(h, profiled) == "gradient (gradient): the profiler's category Category.GRADIENT");
  CHECK(found(h, pooled) == "unknown (private pool 0:4): memory pool: a CUDA graph, or one that the job made");
}

TEST_CASE("marks: ends belong to the newest start; open ones last; steps come of them") {
  Builder b;
  b.mark("late", "END");  // it was open before
  b.mark("Optimizer.step#SGD.step", "START");
  b.alloc(0x1000, 512);
  b.mark("Optimizer.step#SGD.step", "END");
  b.mark("open", "START");
  b.alloc(0x2000, 512);
  b.alloc(0x3000, 512);
  b.mark("Optimizer.step#SGD.step", "START");
  b.alloc(0x4000, 512);
  b.mark("Optimizer.step#SGD.step", "END");
  const AllocatorHistory h = history_of(b.done());
  const SnapshotDevice& device = h.devices[0];
  REQUIRE(device.marks.size() == 4);
  CHECK(b.snapshot.strings[device.marks[0].name] == "late");
  CHECK(b.snapshot.strings[device.marks[2].name] == "open");
  CHECK(device.marks[2].begin == 1);
  CHECK(device.marks[2].end == 4);
  REQUIRE(device.steps.size() == 2);
  CHECK(device.steps[0].name == "step 0");
  CHECK(device.steps[1].begin == 1);
  CHECK(device.steps[1].end == 4);
  const auto inner = innermost_marks(device, [](const MarkedRange&) { return true; });
  CHECK(inner == std::vector<std::uint32_t>{1, 2, 2, 3});
}

TEST_CASE("stacks in words") {
  Builder b;
  const StackId own = b.stack({{"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py", "forward", 125},
                               kForward,
                               kCall,
                               kMain}),
                engine =
                    b.stack({{"??", "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)", 0},
                             kEngine}),
                native = b.stack({{"", "c10::cuda::CUDACachingAllocator::Native::malloc(void**)", 0},
                                  {"??", "at::native::zeros(long)", 0}}),
                torch_only = b.stack({{"/v/lib/python3.11/site-packages/torch/cuda/graphs.py", "capture_begin", 5}}),
                none = b.stack({});
  CHECK(where_text(b.snapshot, own) == "model.py:30 forward < train.py:9 main");
  CHECK(where_text(b.snapshot, engine) == "autograd: AddmmBackward0");
  CHECK(where_text(b.snapshot, native) == "at::native::zeros");
  CHECK(where_text(b.snapshot, torch_only) == "graphs.py:5 capture_begin");
  CHECK(where_text(b.snapshot, none) == "");
  CHECK(where_text(b.snapshot, StackId::none) == "");
  CHECK(full_text(b.snapshot, native) ==
        "c10::cuda::CUDACachingAllocator::Native::malloc(void**)\nat::native::zeros(long)");
}

}  // namespace stepscope::snapshot
