// What the name of an op, annotation or Python frame says about the phase of training it belongs to.
#pragma once

#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::derive {

// Starts the name of a module call's range as the hooks of `stepscope run` write it.
inline constexpr std::string_view kModuleRange = "stepscope.module: ";

// nullopt: the name says nothing.
std::optional<Phase> phase_of_name(std::string_view name, SliceKind kind);

}  // namespace stepscope::derive
