# cmake -DSOURCE=... -DOUTPUT=... -DSYMBOL=... -P EmbedFile.cmake: one text file as a raw string literal.
file(READ ${SOURCE} content)
set(fence "EMBEDDED")
string(FIND "${content}" ")${fence}\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${SOURCE} contains the end marker of its own literal")
endif()
file(WRITE ${OUTPUT} "#include <string_view>\n\nnamespace megalith::embedded {\n"
     "extern const std::string_view ${SYMBOL};\n"
     "const std::string_view ${SYMBOL} = R\"${fence}(${content})${fence}\";\n"
     "}  // namespace megalith::embedded\n")
