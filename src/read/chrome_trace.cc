#include "read/reader.h"

namespace stepscope::read {

Reader chrome_trace_reader() {
  return {"chrome_trace", "", nullptr, nullptr, nullptr};
}

}  // namespace stepscope::read
