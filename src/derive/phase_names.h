// What the name of an op, annotation or Python frame says about the phase of training it belongs to.
#pragma once

#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::derive {

// nullopt: the name says nothing.
std::optional<Phase> phase_of_name(std::string_view name, SliceKind kind);

}  // namespace stepscope::derive
