// Records: the elements of the lists of a file, one after the other, parsed each for itself, so that a broken one costs
// only itself.
#pragma once

#include <functional>
#include <string>

#include "formats/json_stream.h"
#include "read/rocprof_json/fields.h"
#include "read/trace_rows.h"

namespace stepscope::read::rocprof {

class Records {
 public:
  using Take = std::function<void(const Record& record, std::uint64_t place)>;

  explicit Records(formats::JsonStream& in) : in_(in) {}

  // All elements of the list that comes next that are objects; what is no list, no object or broken is noted in `rows`.
  void each(TraceRows& rows, const Take& take);
  // The value that comes next, as each() gives elements.
  void one(TraceRows& rows, const Take& take);
  // How many elements the list has that comes next.
  std::uint64_t count();

 private:
  formats::JsonStream& in_;
  simdjson::dom::parser parser_;
  std::string repaired_;
};

}  // namespace stepscope::read::rocprof
