#include "analyze/memory_state/findings.h"

#include <algorithm>

#include "analyze/memory_state/tables.h"
#include "model/answer_parts.h"

namespace stepscope::analyze::memory_states {
namespace {

constexpr std::int64_t kLittle = 1 << 20;  // bytes below which nothing is worth a change
constexpr std::size_t kMost = 8;           // findings of one kind

constexpr std::string_view kNotTime = "It is about memory, not time.";

std::int64_t bytes_of(const MemoryLayout& layout, std::initializer_list<MemoryCategory> categories) {
  std::int64_t sum = 0;
  for (const MemoryCategory category : categories) {
    if (const MemoryTree* tree = layout.tree(category)) sum += tree->bytes();
  }
  return sum;
}

// The sentences say "most".
bool is_most(std::int64_t part, std::int64_t whole) { return part >= kLittle && part > whole - part; }

// The node with most bytes of its own.
const MemoryTreeRow* largest_own(const MemoryTree& tree) {
  const auto found =
      std::max_element(tree.rows.begin(), tree.rows.end(),
                       [](const MemoryTreeRow& a, const MemoryTreeRow& b) { return a.own_bytes < b.own_bytes; });
  return found == tree.rows.end() ? nullptr : &*found;
}

Finding about(const MemoryState& state, const char* id, std::string sentence) {
  return {.id = id,
          .cause = "memory",
          .sentence = std::move(sentence),
          .where = {.rank = state.rank},
          .evidence = {},
          .gain = {},
          .gain_reason = std::string(kNotTime),
          .confidence = "high",
          .next = {}};
}

void find_activations(const MemoryState& state, Answer& answer) {
  const MemoryTree* tree = state.peak->tree(MemoryCategory::activation);
  if (tree == nullptr || !is_most(tree->bytes(), state.peak->bytes())) return;
  const MemoryTreeRow* most = largest_own(*tree);
  Finding finding = about(state, "memory_activations", "Most of the memory at the peak is what autograd keeps");
  const std::string& path = state.nodes[most->node].path;
  if (!path.empty()) finding.where.module = path;
  finding.evidence = {{.text = "Activations at the peak", .value = tree->bytes(), .unit = Unit::bytes},
                      {.text = "All at the peak", .value = state.peak->bytes(), .unit = Unit::bytes},
                      {.text = "Kept by " + (path.empty() ? "what runs outside of modules, such as the loss" : path),
                       .value = most->own_bytes,
                       .unit = Unit::bytes}};
  finding.next =
      "Recompute instead of keeping (torch.utils.checkpoint) where most is kept: table at_peak, category activation; "
      "or "
      "smaller micro-batches, fused attention and loss";
  answer.findings.push_back(std::move(finding));
}

void find_optimizer(const MemoryState& state, Answer& answer) {
  const std::int64_t held = bytes_of(*state.peak, {MemoryCategory::optimizer_state, MemoryCategory::master_parameter});
  const std::int64_t parameters = bytes_of(*state.peak, {MemoryCategory::parameter});
  if (!is_most(held, state.peak->bytes()) || held < parameters) return;
  Finding finding = about(state, "memory_optimizer_state", "Most of the memory at the peak is the optimizer's");
  finding.evidence = {{.text = "State and master parameters", .value = held, .unit = Unit::bytes},
                      {.text = "Parameters", .value = parameters, .unit = Unit::bytes},
                      {.text = "All at the peak", .value = state.peak->bytes(), .unit = Unit::bytes}};
  finding.next = state.world_size > 1
                     ? "Share it among the ranks: ZeroRedundancyOptimizer, FSDP, or the optimizer's own sharding"
                     : "An optimizer with less state (8-bit, Adafactor), or sharding with more ranks";
  answer.findings.push_back(std::move(finding));
}

// Gradients of the step before that are still there in the first forward pass, which makes its activations come on top.
void find_old_gradients(const MemoryState& state, Answer& answer) {
  const auto old = [](const MemoryPoint& point) {
    return point.moment.event == "forward" && point.moment.micro_batch == 0 && point.moment.step > 0 &&
           point.bytes[static_cast<std::size_t>(MemoryCategory::gradient)] >= kLittle;
  };
  const auto found = std::find_if(state.points.begin(), state.points.end(), old);
  const bool in_a_pass = state.peak->moment.event == "forward" || state.peak->moment.event == "backward";
  if (found == state.points.end() || !in_a_pass) return;
  Finding finding = about(state, "memory_old_gradients",
                          "Gradients of the step before are still there in the forward pass, under the peak");
  finding.evidence = {
      {.text = "Gradients at the end of the first forward pass of step " + std::to_string(found->moment.step),
       .value = found->bytes[static_cast<std::size_t>(MemoryCategory::gradient)],
       .unit = Unit::bytes},
      {.text = "All at the peak", .value = state.peak->bytes(), .unit = Unit::bytes}};
  finding.next = "Call optimizer.zero_grad(set_to_none=True) right after optimizer.step()";
  answer.findings.push_back(std::move(finding));
}

// What autograd still keeps when all backward passes of a step are over.
void find_kept_graphs(const MemoryState& state, Answer& answer) {
  for (const MemoryPoint& point : state.points) {
    if (point.moment.event != "step") continue;
    const std::int64_t kept = point.bytes[static_cast<std::size_t>(MemoryCategory::activation)];
    if (kept < kLittle || kept * 50 < state.peak->bytes()) continue;
    Finding finding = about(state, "memory_kept_graph", "Autograd keeps activations beyond the step that made them");
    finding.evidence = {
        {.text = "Kept at the end of step " + std::to_string(point.moment.step), .value = kept, .unit = Unit::bytes}};
    finding.next =
        "Look for a loss or an output that is stored with its graph (loss instead of loss.item()), and for "
        "retain_graph=True; table at_end names the modules";
    answer.findings.push_back(std::move(finding));
    return;
  }
}

void find_fragments(const MemoryState& state, Answer& answer) {
  const AllocatorFigures* worst = nullptr;
  for (const MemoryPoint& point : state.points) {
    if (!point.allocator || !point.allocator->inactive_split_bytes || !point.allocator->reserved_bytes) continue;
    const bool worse = worst == nullptr || *point.allocator->inactive_split_bytes > *worst->inactive_split_bytes;
    if (worse) worst = &*point.allocator;
  }
  if (worst == nullptr || *worst->inactive_split_bytes < (64 << 20)) return;
  if (*worst->inactive_split_bytes * 10 < *worst->reserved_bytes) return;
  Finding finding =
      about(state, "memory_fragmented", "A tenth or more of what torch has of the device is in fragments");
  finding.evidence = {
      {.text = "Free pieces of split blocks", .value = *worst->inactive_split_bytes, .unit = Unit::bytes},
      {.text = "Reserved then", .value = *worst->reserved_bytes, .unit = Unit::bytes}};
  finding.next = "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  answer.findings.push_back(std::move(finding));
}

void find_outlier(const Run& run, Answer& answer) {
  std::vector<std::int64_t> peaks;
  for (const MemoryState& state : run.memory_states) {
    if (state.peak) peaks.push_back(state.peak->bytes());
  }
  const auto middle = median(peaks);
  if (peaks.size() < 3 || !middle) return;
  for (const MemoryState& state : run.memory_states) {
    const std::int64_t peak = state.peak ? state.peak->bytes() : 0;
    if (peak * 10 < *middle * 12 || peak - *middle < kLittle) continue;
    Finding finding = about(state, "memory_rank_outlier",
                            "Rank " + std::to_string(state.rank) + " needs more memory than the others");
    finding.evidence = {{.text = "Its peak", .value = peak, .unit = Unit::bytes},
                        {.text = "Median of the peaks of all ranks", .value = *middle, .unit = Unit::bytes}};
    finding.next = "Compare the trees of the ranks: table at_peak";
    answer.findings.push_back(std::move(finding));
    if (answer.findings.size() >= kMost) return;
  }
}

}  // namespace

void find_causes(const Run& run, Answer& answer) {
  const MemoryState* highest = nullptr;
  for (const MemoryState& state : run.memory_states) {
    if (state.peak && (highest == nullptr || state.peak->bytes() > highest->peak->bytes())) highest = &state;
  }
  if (highest == nullptr) return;
  find_outlier(run, answer);
  find_activations(*highest, answer);  // what holds for one rank mostly holds for all: said once
  find_optimizer(*highest, answer);
  find_old_gradients(*highest, answer);
  find_kept_graphs(*highest, answer);
  find_fragments(*highest, answer);
}

}  // namespace stepscope::analyze::memory_states
