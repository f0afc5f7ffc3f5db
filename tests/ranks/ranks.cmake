# Training on several ranks of this machine.
find_program(RANKS_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT RANKS_PYTHON)
  return()
endif()
foreach(script layouts resume shared_state links)
  set(test ${CMAKE_SOURCE_DIR}/tests/ranks/${script}.py $<TARGET_FILE:megalith>)
  add_test(NAME ranks.${script} COMMAND ${RANKS_PYTHON} ${test})
  set_tests_properties(ranks.${script} PROPERTIES TIMEOUT 900)
endforeach()
add_test(NAME ranks.layouts_long COMMAND ${RANKS_PYTHON} ${CMAKE_SOURCE_DIR}/tests/ranks/layouts.py $<TARGET_FILE:megalith>
         --all --table ${CMAKE_SOURCE_DIR}/docs/layouts.md)
add_test(NAME ranks.resume_long COMMAND ${RANKS_PYTHON} ${CMAKE_SOURCE_DIR}/tests/ranks/resume.py $<TARGET_FILE:megalith> --all)
add_test(NAME ranks.memory_long COMMAND ${RANKS_PYTHON} ${CMAKE_SOURCE_DIR}/tests/ranks/memory.py $<TARGET_FILE:megalith>
         --table ${CMAKE_SOURCE_DIR}/docs/memory_of_ranks.md)
set_tests_properties(ranks.layouts_long ranks.resume_long ranks.memory_long PROPERTIES LABELS "long;ranks" TIMEOUT 3600)
