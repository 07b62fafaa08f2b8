# The page of the HTML report: web/ is bundled by esbuild and embedded in the core library.
#
#   stepscope_web(TARGET)
#
# Three ways, the first that works: node and web/node_modules (bundled at build time), a bundle made before in web/dist,
# or nothing: then the page is empty, report::to_html says what to install, and everything else is built as ever.
function(stepscope_web target)
  set(web ${CMAKE_CURRENT_SOURCE_DIR}/web)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(parts report.js report.css csp.txt)
  find_program(NODE node nodejs)
  # Globbed, so that a later "npm ci" or "npm run build" is noticed without configuring by hand.
  file(GLOB esbuild CONFIGURE_DEPENDS ${web}/node_modules/esbuild/package.json)
  file(GLOB preact CONFIGURE_DEPENDS ${web}/node_modules/preact/package.json)
  file(GLOB prebuilt CONFIGURE_DEPENDS ${web}/dist/csp.txt)
  if(NODE AND esbuild AND preact)
    set(dist ${CMAKE_CURRENT_BINARY_DIR}/web)
    list(TRANSFORM parts PREPEND ${dist}/ OUTPUT_VARIABLE made)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
    add_custom_command(OUTPUT ${made} COMMAND ${NODE} ${web}/build.mjs ${dist}
                       DEPENDS ${sources} ${web}/build.mjs ${web}/package-lock.json
                       COMMENT "Bundling the HTML report's page" VERBATIM)
    message(STATUS "HTML report: bundled from web/src")
  elseif(prebuilt)
    set(dist ${web}/dist)
    list(TRANSFORM parts PREPEND ${dist}/ OUTPUT_VARIABLE made)
    message(STATUS "HTML report: the bundle in web/dist is used as it is")
  else()
    set(dist "")
    set(made "")
    message(STATUS "HTML report: left out (install nodejs and npm, then run: npm ci --prefix web)")
  endif()
  add_custom_command(OUTPUT ${out}/bundle.cc
                     COMMAND ${CMAKE_COMMAND} -DDIST=${dist} -DOUT=${out}/bundle.cc -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
                     DEPENDS ${made} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out}/bundle.cc)
endfunction()
