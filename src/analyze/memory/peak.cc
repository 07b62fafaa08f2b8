#include "analyze/memory/peak.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "model/answer_parts.h"
#include "model/module_paths.h"

namespace stepscope::analyze::memory {
namespace {

struct Sum {
  std::int64_t bytes = 0, allocations = 0;

  void add(std::int64_t more) {
    bytes += more;
    allocations++;
  }
};

std::int64_t peak_bytes(const Held& held) { return static_cast<std::int64_t>(held.stats.high); }

// Indexes of the allocations that were alive then.
std::vector<std::size_t> alive_at_peak(const Held& held) {
  std::vector<std::size_t> alive;
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
    if (held.memory.alive(held.memory.allocations[at], held.peak)) alive.push_back(at);
  }
  return alive;
}

// Bytes at the peak that neither an allocation of the recording explains nor what the program told.
std::int64_t of_before(const Held& held) {
  std::int64_t known = 0;
  for (const std::size_t at : alive_at_peak(held)) known += held.bytes(at);
  for (const Told& one : held.before) known += one.bytes;
  return std::max<std::int64_t>(peak_bytes(held) - known, 0);
}

// What was there before the recording, by category; those that have none are left out.
std::vector<std::pair<MemoryCategory, std::int64_t>> all_before(const Held& held) {
  std::vector<std::pair<MemoryCategory, std::int64_t>> out;
  auto sums = held.before_by_category();
  sums[static_cast<std::size_t>(MemoryCategory::unknown)] += of_before(held);
  for (std::size_t c = 0; c < kMemoryCategories; c++) {
    if (sums[c] > 0) out.emplace_back(static_cast<MemoryCategory>(c), sums[c]);
  }
  return out;
}

void sort_by_bytes(Table& table, std::size_t first, std::size_t column) {
  std::stable_sort(table.rows.begin() + static_cast<std::ptrdiff_t>(first), table.rows.end(),
                   [&](const auto& x, const auto& y) {
                     return std::get<std::int64_t>(x[column]) > std::get<std::int64_t>(y[column]);
                   });
}

Table ops_at_peak(const std::vector<Held>& all) {
  Table table{
      .name = "at_peak",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::text, Unit::none, "Device of the allocator"},
                  {"op", ValueType::text, Unit::none,
                   "Operator or range that allocated it, but for those that only allocate for the one around them; "
                   "unknown: none, or before the recording"},
                  {"phase", ValueType::text, Unit::none, "Phase of the allocation; unknown: before the recording"},
                  {"category", ValueType::text, Unit::none, "What it is used for"},
                  {"bytes", ValueType::integer, Unit::bytes, "Bytes alive at the peak"},
                  {"share", ValueType::real, Unit::ratio, "Share of the peak"},
                  {"allocations", ValueType::integer, Unit::count, "Allocations; unknown: before the recording"}}};
  for (const Held& held : all) {
    std::map<std::tuple<StringId, Phase, MemoryCategory>, Sum> sums;
    for (const std::size_t at : alive_at_peak(held))
      sums[{held.op_name(at), held.phase(at), held.use[at].category}].add(held.bytes(at));
    const std::size_t first = table.rows.size();
    const std::int64_t peak = peak_bytes(held);
    for (const auto& [key, sum] : sums) {
      const auto& [op, phase, category] = key;
      table.rows.push_back({held.rank(), held.memory.name(), text(held.trace->strings[op]), text(to_string(phase)),
                            text(to_string(category)), sum.bytes, share(sum.bytes, peak), sum.allocations});
    }
    for (const auto& [category, bytes] : all_before(held)) {
      table.rows.push_back({held.rank(), held.memory.name(), Value(), Value(), text(to_string(category)), bytes,
                            share(bytes, peak), Value()});
    }
    sort_by_bytes(table, first, 5);
  }
  return table;
}

// ---- by module ----

struct OfModule {
  std::int64_t own = 0, total = 0;  // total: with the modules below it
  std::int64_t parameter = 0, gradient = 0, state = 0, activation = 0, temporary = 0;

  void add(MemoryCategory category, std::int64_t bytes) {
    total += bytes;
    switch (category) {
      case MemoryCategory::parameter: parameter += bytes; break;
      case MemoryCategory::gradient: gradient += bytes; break;
      case MemoryCategory::master_parameter:
      case MemoryCategory::optimizer_state: state += bytes; break;
      case MemoryCategory::activation: activation += bytes; break;
      case MemoryCategory::temporary:
      case MemoryCategory::workspace: temporary += bytes; break;
      default: break;
    }
  }
};

// What matters most stands in front: a narrow terminal leaves out the rest.
Table module_table() {
  return {.name = "by_module",
          .columns = {
              {"rank", ValueType::integer, Unit::none, "Rank"},
              {"device", ValueType::text, Unit::none, "Device of the allocator"},
              {"module", ValueType::text, Unit::none,
               "Path of the module that allocated it, or whose parameter it belongs to; in backward, of the forward "
               "operator whose gradient it is; unknown: in no module, or not told of what was there before"},
              {"bytes", ValueType::integer, Unit::bytes, "Bytes alive at the peak, with the modules below it"},
              {"share", ValueType::real, Unit::ratio, "Share of the peak"},
              {"activation_bytes", ValueType::integer, Unit::bytes, "Of the bytes: kept for backward"},
              {"parameter_bytes", ValueType::integer, Unit::bytes,
               "Of the bytes: parameters; unknown: of before the recording, and not told"},
              {"gradient_bytes", ValueType::integer, Unit::bytes, "Of the bytes: gradients"},
              {"optimizer_bytes", ValueType::integer, Unit::bytes,
               "Of the bytes: state of the optimizer, and its own copies of parameters; unknown: as of parameters"},
              {"temporary_bytes", ValueType::integer, Unit::bytes,
               "Of the bytes: in use for a moment, scratch memory of libraries among them"},
              {"own_bytes", ValueType::integer, Unit::bytes, "Of the bytes, of none of the modules below it"},
              {"class", ValueType::text, Unit::none, "Its class; unknown: not recorded, or nobody calls it"},
              {"depth", ValueType::integer, Unit::none, "Modules around it"},
              {"parent", ValueType::text, Unit::none, "Path of the innermost of them"}}};
}

void add_modules(Table& table, const Held& held) {
  const ModulePaths paths(*held.trace);
  if (paths.nodes().empty()) return;
  std::vector<OfModule> sums(paths.nodes().size());
  OfModule outside;
  const auto add = [&](std::uint32_t inner, MemoryCategory category, std::int64_t bytes) {
    (inner == ModulePaths::none ? outside : sums[inner]).own += bytes;
    if (inner == ModulePaths::none) outside.add(category, bytes);
    for (; inner != ModulePaths::none; inner = paths.nodes()[inner].parent) sums[inner].add(category, bytes);
  };
  for (const std::size_t at : alive_at_peak(held))
    add(paths.node_of(held.around[at]), held.use[at].category, held.bytes(at));
  for (const Told& one : held.before) add(paths.node_at(one.module), one.category, one.bytes);
  add(ModulePaths::none, MemoryCategory::unknown, of_before(held));
  // A parameter is mostly older than the recording: where nobody told of those, none was seen, not none is there.
  const auto seen = [&](std::int64_t bytes) { return value_if(bytes > 0 || !held.before.empty(), bytes); };
  const auto row = [&](Value path, Value type, Value depth, Value parent, const OfModule& sum) {
    if (sum.total == 0) return;
    table.rows.push_back({held.rank(), held.memory.name(), std::move(path), sum.total,
                          share(sum.total, peak_bytes(held)), sum.activation, seen(sum.parameter), sum.gradient,
                          seen(sum.state), sum.temporary, sum.own, std::move(type), std::move(depth),
                          std::move(parent)});
  };
  const std::size_t first = table.rows.size();
  for (std::size_t node = 0; node < sums.size(); node++) {
    const ModulePaths::Node& place = paths.nodes()[node];
    row(text(place.path), text(held.trace->strings[place.type]), std::int64_t{place.depth},
        place.parent == ModulePaths::none ? Value() : text(paths.nodes()[place.parent].path), sums[node]);
  }
  row(Value(), Value(), Value(), Value(), outside);
  sort_by_bytes(table, first, 3);
}

// ---- by stack ----

Table stack_table() {
  return {.name = "by_stack",
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                      {"device", ValueType::text, Unit::none, "Device of the allocator"},
                      {"bytes", ValueType::integer, Unit::bytes, "Bytes alive at the peak"},
                      {"share", ValueType::real, Unit::ratio, "Share of the peak"},
                      {"allocations", ValueType::integer, Unit::count, "Allocations; unknown: before the recording"},
                      {"category", ValueType::text, Unit::none, "What it is used for"},
                      {"stack", ValueType::text, Unit::none,
                       "Python frames that allocated it, innermost first; of the step recorded with stacks where the "
                       "others have none; unknown: not recorded, or before the recording"}}};
}

void add_stacks(Table& table, const Held& held, const OtherStacks& others) {
  std::map<std::pair<std::string, MemoryCategory>, Sum> sums;
  bool any = false;
  for (const std::size_t at : alive_at_peak(held)) {
    std::string stack = others.of(held, at);
    any = any || !stack.empty();
    sums[{std::move(stack), held.use[at].category}].add(held.bytes(at));
  }
  if (!any) return;
  const std::size_t first = table.rows.size();
  const std::int64_t peak = peak_bytes(held);
  for (const auto& [key, sum] : sums) {
    table.rows.push_back({held.rank(), held.memory.name(), sum.bytes, share(sum.bytes, peak), sum.allocations,
                          text(to_string(key.second)), text(key.first)});
  }
  for (const auto& [category, bytes] : all_before(held)) {
    table.rows.push_back(
        {held.rank(), held.memory.name(), bytes, share(bytes, peak), Value(), text(to_string(category)), Value()});
  }
  sort_by_bytes(table, first, 2);
}

}  // namespace

void add_peak(Answer& answer, const std::vector<Held>& all, const OtherStacks& others) {
  Table modules = module_table(), stacks = stack_table();
  for (const Held& held : all) {
    add_modules(modules, held);
    add_stacks(stacks, held, others);
  }
  answer.tables.push_back(ops_at_peak(all));
  answer.tables.push_back(std::move(modules));
  answer.tables.push_back(std::move(stacks));
}

}  // namespace stepscope::analyze::memory
