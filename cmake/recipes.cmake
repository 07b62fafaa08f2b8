# Makes recipes.cc: every src/query/recipes/NAME.sql as a statement of that name, in the order of their names.
function(stepscope_recipes out)
  file(GLOB files CONFIGURE_DEPENDS src/query/recipes/*.sql)
  list(SORT files)
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} sql)
    string(REGEX MATCH "^-- ([^\n]+)" sentence "${sql}")
    string(APPEND entries "      Recipe{\"${name}\", R\"sql(${sql})sql\", R\"text(${CMAKE_MATCH_1})text\"},\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/query_recipes.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT
"// Made by cmake/recipes.cmake from src/query/recipes.
#include <array>

#include \"query/query.h\"

namespace stepscope::query {
std::span<const Recipe> recipes() {
  static constexpr std::array all{
${entries}  };
  return all;
}
}  // namespace stepscope::query
")
  set(${out} ${generated} PARENT_SCOPE)
endfunction()
