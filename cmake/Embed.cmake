# Text files as string constants of a library: megalith_embed(report FILE...) compiles
# src/report/FILE... into embedded::FILE_NAME (dots and dashes become underscores), declared in the generated
# header "embedded/report.h". If a file changes, only its constant is compiled again.
function(megalith_embed name)
  set(root ${CMAKE_BINARY_DIR}/embedded/${name})
  set(header "#pragma once\n#include <string_view>\n\nnamespace megalith::embedded {\n")
  foreach(file ${ARGN})
    get_filename_component(base ${file} NAME)
    string(MAKE_C_IDENTIFIER ${base} symbol)
    set(source ${CMAKE_SOURCE_DIR}/src/${name}/${file})
    set(output ${root}/${symbol}.cpp)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DOUTPUT=${output} -DSYMBOL=${symbol}
              -P ${CMAKE_SOURCE_DIR}/cmake/EmbedFile.cmake
      DEPENDS ${source} ${CMAKE_SOURCE_DIR}/cmake/EmbedFile.cmake
      COMMENT "Embedding ${file}")
    target_sources(megalith_${name} PRIVATE ${output})
    set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    string(APPEND header "extern const std::string_view ${symbol};\n")
  endforeach()
  string(APPEND header "}  // namespace megalith::embedded\n")
  file(CONFIGURE OUTPUT ${root}/include/embedded/${name}.h CONTENT "${header}" @ONLY)
  target_include_directories(megalith_${name} PRIVATE ${root}/include)
endfunction()
