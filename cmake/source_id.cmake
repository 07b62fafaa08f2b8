# Makes source_id.cc: a hash of the sources that decide what a Trace holds, so that a cache made by other code is never
# taken. Run as a script (cmake -P) at build time, whenever one of them changed.
#
#   stepscope_source_id(out room…)
if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS ${LIST} files)
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 ${file} hash)
    string(APPEND all ${hash})
  endforeach()
  string(SHA256 id "${all}")
  string(SUBSTRING ${id} 0 16 id)
  file(WRITE ${OUT}
"// Made by cmake/source_id.cmake.
#include \"base/version.h\"

namespace stepscope {
std::string_view source_id() { return \"${id}\"; }
}  // namespace stepscope
")
  return()
endif()

function(stepscope_source_id out)
  set(files "")
  foreach(room IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS src/${room}/*.cc src/${room}/*.h src/${room}/*.txt src/${room}/*.list)
    list(APPEND files ${found})
  endforeach()
  list(FILTER files EXCLUDE REGEX "_(test\\.cc|fixture\\.h)$")
  set(list ${CMAKE_CURRENT_BINARY_DIR}/generated/source_id.files)
  string(REPLACE ";" "\n" lines "${files}")
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/source_id.cc)
  add_custom_command(OUTPUT ${generated} DEPENDS ${files} ${list} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
                     COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUT=${generated} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
                     VERBATIM)
  set(${out} ${generated} PARENT_SCOPE)
endfunction()
