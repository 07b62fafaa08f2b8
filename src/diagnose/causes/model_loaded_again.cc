// A model that is read from its file, and put in place, for each request or step.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

// What one function of the program does of it: one that only reads has other data, one that only puts copies from model
// to model.
struct Loading {
  bool reads = false, puts = false;
  std::set<std::uint32_t> nodes;
};

// By file and first line of the function.
using Functions = std::map<std::pair<std::string, std::int64_t>, Loading>;

Loading* part_of(const Source& source, const Code& code, Functions& functions) {
  const PartOfLoad part = part_of_load(code);
  const CodeFrame* own = code.own();
  if (part == PartOfLoad::none || own == nullptr) return nullptr;
  Loading& loading = functions[{own->file, source.first_line(*own)}];
  (part == PartOfLoad::reads ? loading.reads : loading.puts) = true;
  return &loading;
}

}  // namespace

Cause model_loaded_again_cause() {
  return {"model_loaded_again", "A model loaded among the steps", [](const Case& about, std::vector<Diagnosis>& out) {
            Functions functions;
            for (const Trace& trace : timelines(about.run)) {
              const Source& source = about.places.source(trace);
              for (const Operation& one : about.operations(trace)) {
                if (Loading* loading = part_of(source, about.code(trace, one.slice), functions)) {
                  const auto& nodes = passes(about).nodes(trace, one.slice);
                  loading->nodes.insert(nodes.begin(), nodes.end());
                }
                for (const std::uint32_t node : one.after) {
                  const Work work = about.work(node);
                  if (!work.between_operators()) continue;
                  if (Loading* loading = part_of(source, about.code(work), functions)) loading->nodes.insert(node);
                }
              }
            }
            for (const auto& [function, loading] : functions) {
              if (!loading.reads || !loading.puts) continue;
              Gathered model(about);
              for (const std::uint32_t node : loading.nodes) {
                const Work work = about.work(node);
                model.add(node, work, work.operation == SliceId::none ? "code between operators" : work.name(), 0,
                          0.05);
              }
              if (!model.worth_saying()) continue;
              out.push_back(model.diagnosis(
                  {.cause = "io",
                   .sentence = "The steps wait while a model is loaded from its file",
                   .next = "Load each model once and keep it, by name in a dict or behind functools.lru_cache, as many "
                           "as memory has room for"}));
              out.back().finding.where.op.reset();
            }
          }};
}

}  // namespace stepscope::diagnose::causes
