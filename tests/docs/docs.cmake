# Documents name only what exists. `make docs` builds the site and fails on broken links, too.
if(CLI_PYTHON)
  add_test(NAME docs.check COMMAND ${CLI_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/check_docs)
endif()
