# Fuzz targets: each fuzz/NAME_fuzz.cc is one program, linked with the whole core that was built under the fuzzer's
# instrumentation; its kept corpus is fuzz/corpus/NAME. tools/fuzz.sh runs them.
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*_fuzz.cc)
file(GLOB fuzz_helpers CONFIGURE_DEPENDS fuzz/*.cc)
list(FILTER fuzz_helpers EXCLUDE REGEX "_fuzz\\.cc$")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source} ${fuzz_helpers})
  target_include_directories(${name} PRIVATE fuzz)
  target_link_libraries(${name} PRIVATE stepscope_core)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endforeach()
