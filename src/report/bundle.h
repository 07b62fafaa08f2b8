// The bundle of the HTML report's page, embedded by cmake/web.cmake. Empty texts: this build was made without node.
#pragma once

#include <string_view>

namespace stepscope::report {

std::string_view bundle_script();  // goes between script tags byte for byte, or its hash in the policy is wrong
std::string_view bundle_style();   // the same, between style tags
std::string_view bundle_policy();  // the content security policy

}  // namespace stepscope::report
