# Attacks with a fixed seed, judged by rules: a part of `make test-long`.
find_program(CAMPAIGN_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT CAMPAIGN_PYTHON)
  return()
endif()
add_library(fail_calls MODULE tests/campaign/fail_calls.c)
target_compile_options(fail_calls PRIVATE -Wall -Wextra -O1)
set_target_properties(fail_calls PROPERTIES PREFIX "" C_STANDARD 11)
target_link_libraries(fail_calls PRIVATE ${CMAKE_DL_LIBS})

add_test(NAME campaign COMMAND ${CAMPAIGN_PYTHON} ${CMAKE_SOURCE_DIR}/tests/campaign/campaign.py $<TARGET_FILE:megalith>
         $<TARGET_FILE:fail_calls> --table ${CMAKE_SOURCE_DIR}/docs/reliability.md)
set_tests_properties(campaign PROPERTIES LABELS "long;campaign" TIMEOUT 10800 RUN_SERIAL TRUE)
