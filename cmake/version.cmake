# Makes version.cc, which holds the version and the commit. A change of git's HEAD re-runs the configure step, so that
# the commit in a binary is that of the sources it was made from (uncommitted edits are not seen).
# -DSTEPSCOPE_COMMIT=… names the commit where there is no git checkout (a source archive).
function(stepscope_version out)
  set(commit "${STEPSCOPE_COMMIT}")
  find_package(Git QUIET)
  if(NOT commit AND GIT_FOUND AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    foreach(file HEAD logs/HEAD)
      execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path ${file}
                      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path
                      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      get_filename_component(path "${path}" ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
      if(EXISTS ${path} AND NOT IS_DIRECTORY ${path})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
      endif()
    endforeach()
  endif()
  if(NOT commit)
    set(commit unknown)
  endif()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/version.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT
"// Made by cmake/version.cmake.
#include \"base/version.h\"

namespace stepscope {
std::string_view version() { return \"@PROJECT_VERSION@\"; }
std::string_view commit() { return \"@commit@\"; }
}  // namespace stepscope
")
  set(${out} ${generated} PARENT_SCOPE)
endfunction()
