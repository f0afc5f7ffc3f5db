# What scripts/setup installs.
find_program(SETUP_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(SETUP_PYTHON)
  add_test(NAME setup COMMAND ${SETUP_PYTHON} ${CMAKE_SOURCE_DIR}/tests/setup/setup.py ${CMAKE_SOURCE_DIR})
endif()
