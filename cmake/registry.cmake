# One new file plus one line: reads src/<room>/<room list>.list and makes both the source list and the registry.
#
#   stepscope_registry(ROOM read LIST readers HEADER read/reader.h TYPE Reader SUFFIX reader OUT sources)
#
# Each line NAME stands for the function NAME_SUFFIX() in src/<room>/NAME.cc (and all of src/<room>/NAME/*.cc, where
# that folder exists). A listed name without a file fails here, at configure, and names the path. ROOM may be a folder of
# a room (compat/hta); the namespace follows it.
function(stepscope_registry)
  cmake_parse_arguments(R "" "ROOM;LIST;HEADER;TYPE;SUFFIX;OUT" "" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/src/${R_ROOM})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dir}/${R_LIST}.list)
  file(STRINGS ${dir}/${R_LIST}.list names REGEX "^[a-z]")
  string(REPLACE "/" "_" file_name ${R_ROOM})
  string(REPLACE "/" "::" namespace ${R_ROOM})
  set(declarations "")
  set(entries "")
  set(sources "")
  foreach(name IN LISTS names)
    file(GLOB parts CONFIGURE_DEPENDS ${dir}/${name}/*.cc)
    list(FILTER parts EXCLUDE REGEX "_test\\.cc$")
    if(NOT EXISTS ${dir}/${name}.cc)
      message(FATAL_ERROR "src/${R_ROOM}/${R_LIST}.list names '${name}', but src/${R_ROOM}/${name}.cc does not exist")
    endif()
    list(APPEND sources ${dir}/${name}.cc ${parts})
    string(APPEND declarations "${R_TYPE} ${name}_${R_SUFFIX}();\n")
    string(APPEND entries "      ${name}_${R_SUFFIX}(),\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${file_name}_registry.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT
"// Made by cmake/registry.cmake from src/${R_ROOM}/${R_LIST}.list.
#include <array>

#include \"${R_HEADER}\"

namespace stepscope::${namespace} {
${declarations}
std::span<const ${R_TYPE}> ${R_LIST}() {
  static const std::array all{
${entries}  };
  return all;
}
}  // namespace stepscope::${namespace}
")
  set(${R_OUT} ${sources} ${generated} PARENT_SCOPE)
endfunction()
