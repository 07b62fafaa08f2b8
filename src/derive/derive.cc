#include "derive/derive.h"

namespace stepscope::derive {

Result<void> derive(Trace&, const DeriveOptions&) { return {}; }

}  // namespace stepscope::derive
