#include "snapshot/stack_rules.h"

#include <array>
#include <string>

namespace stepscope::snapshot {
namespace {

constexpr std::string_view kAnyFile, kAnyFunction;

// Frames of C++ have whole signatures as function and mostly no file. Collectives and workspaces stand before the
// passes that call them.
constexpr std::array kRules{
    StackRule{Role::none, kAnyFile, Match::whole, "no rule", ""},
    // communication
    StackRule{Role::communication, kAnyFile, Match::part, "c10d::Reducer::", "buckets of DistributedDataParallel"},
    StackRule{Role::communication, "torch/nn/parallel/distributed.py", Match::whole, "_ddp_init_helper",
              "buckets of DistributedDataParallel"},
    StackRule{Role::communication, kAnyFile, Match::part, "c10d::", "a collective (c10d)"},
    StackRule{Role::communication, kAnyFile, Match::part, "ncclComm", "NCCL"},
    StackRule{Role::communication, "torch/distributed/distributed_c10d.py", Match::whole, kAnyFunction,
              "torch.distributed"},
    StackRule{Role::communication, "torch/distributed/_functional_collectives.py", Match::whole, kAnyFunction,
              "torch.distributed"},
    StackRule{Role::communication, "torch/distributed/nn/functional.py", Match::whole, kAnyFunction,
              "torch.distributed"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::start, "foreach_all_gather", "FSDP all-gather"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::start, "all_gather", "FSDP all-gather"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::whole, "_alloc_padded_unsharded_flat_param",
              "FSDP all-gather"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::whole, "alloc_all_gather_outputs",
              "FSDP all-gather"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::start, "foreach_reduce", "FSDP reduce-scatter"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::start, "reduce_scatter", "FSDP reduce-scatter"},
    StackRule{Role::communication, "torch/distributed/fsdp/", Match::whole, "_get_reduce_scatter_tensors",
              "FSDP reduce-scatter"},
    // workspaces
    StackRule{Role::workspace, kAnyFile, Match::part, "getCurrentCUDABlasHandle", "cuBLAS workspace"},
    StackRule{Role::workspace, kAnyFile, Match::part, "getNewWorkspace", "cuBLAS workspace"},
    StackRule{Role::workspace, kAnyFile, Match::part, "CUDABlasLtWorkspace", "cuBLASLt workspace"},
    StackRule{Role::workspace, kAnyFile, Match::part, "Workspace::Workspace", "cuDNN workspace"},
    StackRule{Role::workspace, kAnyFile, Match::part, "CudnnDropout", "cuDNN dropout state"},
    // optimizers: those of torch, those that derive from its class (whose step it wraps), those of libraries
    StackRule{Role::optimizer_init, "torch/optim/", Match::whole, "_init_group", "torch.optim _init_group"},
    StackRule{Role::optimizer_init, "deepspeed/", Match::whole, "initialize_optimizer_states",
              "DeepSpeed initialize_optimizer_states"},
    StackRule{Role::optimizer_init, kAnyFile, Match::whole, "_init_optimizer_states", "_init_optimizer_states"},
    StackRule{Role::zero_grad, kAnyFile, Match::whole, "zero_grad", "zero_grad"},
    StackRule{Role::zero_grad, "torch/optim/optimizer.py", Match::part, "zero_grad", "zero_grad"},
    StackRule{Role::optimizer, "torch/optim/optimizer.py", Match::whole, "wrapper", "an optimizer's step"},
    StackRule{Role::optimizer, "torch/optim/", Match::whole, "step", "an optimizer's step"},
    StackRule{Role::optimizer, "optim", Match::whole, "step", "an optimizer's step"},
    StackRule{Role::optimizer, "deepspeed/runtime/", Match::whole, "_take_model_step", "an optimizer's step"},
    // parameters
    StackRule{Role::move, "torch/nn/modules/module.py", Match::whole, "_apply", "Module.to and the like"},
    StackRule{Role::move, "torch/nn/modules/module.py", Match::whole, "convert", "Module.to and the like"},
    StackRule{Role::init, "torch/nn/modules/", Match::whole, "__init__", "the constructor of a torch.nn module"},
    StackRule{Role::init, "torch/nn/modules/", Match::whole, "reset_parameters", "reset_parameters"},
    StackRule{Role::init, "torch/nn/parameter.py", Match::whole, kAnyFunction, "torch.nn.Parameter"},
    StackRule{Role::load, "torch/nn/modules/module.py", Match::part, "load_state_dict", "load_state_dict"},
    StackRule{Role::load, "torch/nn/modules/module.py", Match::part, "_load_from_state_dict", "load_state_dict"},
    StackRule{Role::load, "transformers/modeling_utils.py", Match::whole, "from_pretrained", "from_pretrained"},
    StackRule{Role::load, "transformers/", Match::part, "load_pretrained_model", "from_pretrained"},
    StackRule{Role::load, "accelerate/utils/modeling.py", Match::whole, "set_module_tensor_to_device",
              "loading a checkpoint"},
    StackRule{Role::load, "safetensors/torch.py", Match::whole, "load_file", "loading a checkpoint"},
    StackRule{Role::load, kAnyFile, Match::whole, "load_checkpoint", "loading a checkpoint"},
    // batches
    StackRule{Role::input, "torch/utils/data/", Match::whole, kAnyFunction, "torch.utils.data"},
    StackRule{Role::input, "transformers/trainer", Match::start, "_prepare_input", "inputs moved to the device"},
    StackRule{Role::input, "accelerate/utils/operations.py", Match::whole, "send_to_device",
              "inputs moved to the device"},
    StackRule{Role::input, "lightning", Match::whole, "move_data_to_device", "inputs moved to the device"},
    StackRule{Role::input, kAnyFile, Match::whole, "batch_to_device", "inputs moved to the device"},
    // the passes
    StackRule{Role::accumulate, kAnyFile, Match::part, "torch::autograd::AccumulateGrad", "AccumulateGrad"},
    StackRule{Role::backward, kAnyFile, Match::part, "torch::autograd::Engine::", "the autograd engine"},
    StackRule{Role::backward, "torch/autograd/", Match::whole, "backward", "backward()"},
    StackRule{Role::backward, "torch/autograd/", Match::whole, "_engine_run_backward", "backward()"},
    StackRule{Role::backward, "torch/autograd/__init__.py", Match::whole, "grad", "torch.autograd.grad"},
    StackRule{Role::backward, "torch/autograd/__init__.py", Match::whole, "_make_grads", "backward()"},
    StackRule{Role::backward, "torch/_tensor.py", Match::whole, "backward", "backward()"},
    StackRule{Role::backward, "torch/utils/checkpoint.py", Match::whole, "unpack_hook", "checkpointing"},
    StackRule{Role::backward, "torch/utils/checkpoint.py", Match::whole, "backward", "checkpointing"},
    StackRule{Role::backward, kAnyFile, Match::whole, "backward", "a function backward"},
    StackRule{Role::forward, "torch/nn/modules/module.py", Match::whole, "_call_impl", "a module's forward"},
    StackRule{Role::forward, "torch/nn/modules/module.py", Match::whole, "_wrapped_call_impl", "a module's forward"},
    StackRule{Role::forward, kAnyFile, Match::whole, "forward", "a function forward"},
    // what says little: only where nothing further out says more
    StackRule{Role::input, kAnyFile, Match::part, "torch::autograd::THPVariable_to(", "Tensor.to outside of modules",
              true},
    StackRule{Role::input, kAnyFile, Match::part, "torch::autograd::THPVariable_cuda(",
              "Tensor.cuda outside of modules", true},
    StackRule{Role::init, kAnyFile, Match::whole, "__init__", "a constructor", true},
};
static_assert(kRules.size() < 256);

bool matches(const StackRule& rule, std::string_view file, std::string_view function) {
  if (!rule.file.empty() && file.find(rule.file) == file.npos) return false;
  switch (rule.how) {
    case Match::whole: return rule.function.empty() || function == rule.function;
    case Match::start: return function.starts_with(rule.function);
    case Match::part: return function.find(rule.function) != function.npos;
  }
  return false;
}

}  // namespace

std::span<const StackRule> stack_rules() { return kRules; }

std::uint8_t rule_of(std::string_view file, std::string_view function) {
  std::string path;
  if (file.find('\\') != file.npos) {
    path = file;
    for (char& c : path) c = c == '\\' ? '/' : c;
    file = path;
  }
  for (std::size_t i = 1; i < kRules.size(); i++) {
    if (matches(kRules[i], file, function)) return static_cast<std::uint8_t>(i);
  }
  return 0;
}

}  // namespace stepscope::snapshot
