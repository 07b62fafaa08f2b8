// Device waits: rows of category "kernel" that are no work but waits or marks, known only by their names.
//
// MTIA writes its event waits in the same category as its kernels; as work they would count as busy time. They get a
// twin of their category with the same name whose kind is sync.
#include <limits>

#include "derive/passes.h"

namespace stepscope::derive {
namespace {

bool is_wait(std::string_view name) { return name == "event_wait" || name == "event_record"; }

}  // namespace

Result<void> device_waits(Trace& trace, const DeriveOptions&) {
  std::size_t mtia = 0;
  while (mtia < trace.categories.size() && trace.strings[trace.categories[mtia].name] != "mtia_ccp_events") mtia++;
  if (mtia == trace.categories.size() || mtia + 1 >= std::numeric_limits<std::uint16_t>::max()) return {};
  const CategoryId work = static_cast<CategoryId>(mtia);
  const CategoryId wait = static_cast<CategoryId>(trace.categories.size());
  trace.categories.push_back({trace.categories[mtia].name, SliceKind::sync});
  for (const SliceId id : trace.device.slice.span())
    if (trace.slices.category[id] == work && is_wait(trace.name(id))) trace.slices.category[id] = wait;
  return {};
}

}  // namespace stepscope::derive
