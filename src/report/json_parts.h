// Parts of the JSON that several objects have.
#pragma once

#include "model/answer.h"
#include "report/json_writer.h"

namespace stepscope::report {

void write_json(JsonWriter& json, const Finding& finding);

}  // namespace stepscope::report
