#include "derive/phase_names.h"

#include <algorithm>
#include <array>
#include <string>

namespace stepscope::derive {
namespace {

enum Where : unsigned { kOp = 1, kAnnotation = 2, kPython = 4, kHost = 3, kAny = 7 };
enum class How : std::uint8_t { starts, contains, ends };

struct NameRule {
  unsigned where;
  How how;
  std::string_view text;  // lower case: names are compared without case
  Phase phase;
};

// First match wins, so communication stands before the passes that contain it, and zero_grad before optimizer.
constexpr std::array kRules{
    NameRule{kOp, How::starts, "autograd::engine::evaluate_function", Phase::backward},
    NameRule{kOp, How::starts, "torch::autograd::accumulategrad", Phase::backward},
    // data loading
    NameRule{kAny, How::contains, "enumerate(dataloader)", Phase::dataloader},
    NameRule{kAny, How::contains, "dataloaderiter.__next__", Phase::dataloader},
    NameRule{kPython, How::contains, "utils/data/dataloader.py", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "dataloader", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "data_loader", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "data_load", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "load_batch", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "next_batch", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "get_batch", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "wait_for_batch", Phase::dataloader},
    NameRule{kAnnotation, How::contains, "copy_batch_to_gpu", Phase::dataloader},
    // collectives
    NameRule{kHost, How::starts, "nccl:", Phase::communication},
    NameRule{kHost, How::starts, "gloo:", Phase::communication},
    NameRule{kHost, How::starts, "hccl:", Phase::communication},
    NameRule{kHost, How::starts, "xccl:", Phase::communication},
    NameRule{kHost, How::starts, "ucc:", Phase::communication},
    NameRule{kHost, How::starts, "mpi:", Phase::communication},
    NameRule{kHost, How::starts, "c10d::", Phase::communication},
    NameRule{kHost, How::starts, "_c10d_functional::", Phase::communication},
    NameRule{kHost, How::starts, "c10d_functional::", Phase::communication},
    NameRule{kHost, How::starts, "record_param_comms", Phase::communication},
    NameRule{kAnnotation, How::contains, "all_reduce", Phase::communication},
    NameRule{kAnnotation, How::contains, "allreduce", Phase::communication},
    NameRule{kAnnotation, How::contains, "all_gather", Phase::communication},
    NameRule{kAnnotation, How::contains, "allgather", Phase::communication},
    NameRule{kAnnotation, How::contains, "reduce_scatter", Phase::communication},
    NameRule{kAnnotation, How::contains, "all_to_all", Phase::communication},
    NameRule{kAnnotation, How::contains, "alltoall", Phase::communication},
    NameRule{kAnnotation, How::contains, "all2all", Phase::communication},
    // optimizer
    NameRule{kAny, How::contains, "zero_grad", Phase::zero_grad},
    NameRule{kHost, How::starts, "optimizer.step#", Phase::optimizer},
    NameRule{kAnnotation, How::contains, "optimizer", Phase::optimizer},
    NameRule{kPython, How::contains, "torch/optim/", Phase::optimizer},
    // saving and loading; activation checkpointing is another thing and is not meant
    NameRule{kAnnotation, How::contains, "save_checkpoint", Phase::checkpoint},
    NameRule{kAnnotation, How::contains, "load_checkpoint", Phase::checkpoint},
    NameRule{kPython, How::contains, "torch/distributed/checkpoint/", Phase::checkpoint},
    NameRule{kPython, How::contains, "torch/serialization.py", Phase::checkpoint},
    // evaluation
    NameRule{kAnnotation, How::contains, "evaluat", Phase::evaluation},
    NameRule{kAnnotation, How::contains, "validation", Phase::evaluation},
    NameRule{kAnnotation, How::starts, "eval", Phase::evaluation},
    NameRule{kAnnotation, How::starts, "## eval", Phase::evaluation},
    NameRule{kPython, How::ends, "): evaluate", Phase::evaluation},
    NameRule{kPython, How::ends, "): validate", Phase::evaluation},
    // the two passes; (F), (B) and (W) are the marks of pipeline schedules: W computes weight gradients
    NameRule{kOp, How::contains, "_backward", Phase::backward},
    NameRule{kAnnotation, How::contains, "backward", Phase::backward},
    NameRule{kAnnotation, How::contains, "bwd", Phase::backward},
    NameRule{kAnnotation, How::ends, "(b)", Phase::backward},
    NameRule{kAnnotation, How::ends, "(w)", Phase::backward},
    NameRule{kPython, How::contains, "_engine_run_backward", Phase::backward},
    NameRule{kAnnotation, How::contains, "forward", Phase::forward},
    NameRule{kAnnotation, How::contains, "fwd", Phase::forward},
    NameRule{kAnnotation, How::ends, "(f)", Phase::forward},
    NameRule{kOp, How::ends, ".forward", Phase::forward},
    NameRule{kPython, How::starts, "nn.module: ", Phase::forward},
    NameRule{kAnnotation, How::starts, "execute_", Phase::forward},
    NameRule{kAnnotation, How::starts, "step[", Phase::forward},
};

bool matches(const NameRule& rule, std::string_view name) {
  switch (rule.how) {
    case How::starts: return name.starts_with(rule.text);
    case How::contains: return name.find(rule.text) != std::string_view::npos;
    case How::ends: return name.ends_with(rule.text);
  }
  return false;
}

unsigned where_of(SliceKind kind) {
  switch (kind) {
    case SliceKind::cpu_op: return kOp;
    case SliceKind::user_annotation: return kAnnotation;
    case SliceKind::python_function: return kPython;
    default: return 0;
  }
}

// Autograd nodes: AddmmBackward0, CompiledFunctionBackward …
bool is_autograd_node(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward");
}

}  // namespace

std::optional<Phase> phase_of_name(std::string_view name, SliceKind kind) {
  const unsigned where = where_of(kind);
  if (where == 0) return std::nullopt;
  if ((where & kHost) != 0 && name.starts_with(kModuleRange)) return Phase::forward;  // whatever the module is called
  if (where == kOp && is_autograd_node(name)) return Phase::backward;
  std::string lower(name.substr(0, 512));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::string_view text = lower;
  const bool both = text.find("forward") != text.npos && text.find("backward") != text.npos;
  if (where == kAnnotation && both) return std::nullopt;
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const NameRule& rule) {
    return (rule.where & where) != 0 && matches(rule, text);
  });
  return found == kRules.end() ? std::nullopt : std::optional(found->phase);
}

}  // namespace stepscope::derive
