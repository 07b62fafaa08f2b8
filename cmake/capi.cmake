# libstepscope.so: the C ABI, loaded by Python beside torch and whatever else is in the process. Hidden symbols, its own
# C++ runtime and no undefined names, so that neither side can see the other.
function(stepscope_capi)
  add_library(stepscope_capi STATIC ${ARGN})
  target_link_libraries(stepscope_capi PUBLIC stepscope_core)

  set(script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/capi.map)
  add_library(stepscope_shared SHARED src/capi/stepscope.cc)
  set_target_properties(stepscope_shared PROPERTIES OUTPUT_NAME stepscope LINK_DEPENDS ${script})
  target_link_libraries(stepscope_shared PRIVATE stepscope_capi)
  target_link_options(stepscope_shared PRIVATE -Wl,--version-script=${script} -Wl,-Bsymbolic)
  if(NOT STEPSCOPE_SANITIZE)  # a sanitizer's runtime comes with the program that loads the library
    target_link_options(stepscope_shared PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
  endif()
endfunction()
