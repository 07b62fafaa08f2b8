# cmake -DDIST=folder -DOUT=bundle.cc -P embed.cmake: the three files of the page's bundle as byte arrays; with an empty
# DIST, three empty texts.
set(text "// Made by cmake/embed.cmake from the page's bundle.\n#include \"report/bundle.h\"\n\nnamespace stepscope::report {\n")
foreach(part script:report.js style:report.css policy:csp.txt)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 name)
  list(GET part 1 file)
  set(bytes "")
  if(DIST)
    file(READ ${DIST}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  endif()
  string(APPEND text "static constexpr unsigned char ${name}_bytes[] = {${bytes}0};\n"
                     "std::string_view bundle_${name}() {\n"
                     "  return {reinterpret_cast<const char*>(${name}_bytes), sizeof(${name}_bytes) - 1};\n}\n")
endforeach()
file(WRITE ${OUT} "${text}}  // namespace stepscope::report\n")
