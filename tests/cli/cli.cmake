# The binary from outside: every script runs it as a user does and judges what it says and leaves behind.
find_program(CLI_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT CLI_PYTHON)
  return()
endif()

# cli_test(name script timeout [arguments…]). Timeouts are generous: machines are shared.
function(cli_test name script timeout)
  add_test(NAME cli.${name}
           COMMAND ${CLI_PYTHON} ${CMAKE_SOURCE_DIR}/tests/cli/${script}.py $<TARGET_FILE:megalith> ${ARGN})
  set_tests_properties(cli.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout})
endfunction()

cli_test(bad_input bad_input 900)
cli_test(bad_settings bad_settings 900)
cli_test(contrastive contrastive 900)
cli_test(damage damage 900)
cli_test(device device 900)
cli_test(efficiency efficiency 900)
cli_test(data data 600)
cli_test(front front 300)
cli_test(generation generation 900)
cli_test(models models 900)
cli_test(outlook outlook 600)
cli_test(precision precision 900)
cli_test(prediction prediction 600)
cli_test(resume resume 900)
cli_test(share share 900 $<TARGET_FILE:probe>)
cli_test(signals signals 600)
cli_test(spill spill 900)
cli_test(stories stories 300 $<TARGET_FILE:probe>)
cli_test(tokenizer_files tokenizer_files 600)

# The guides' commands, as a reader would type them.
file(GLOB guides CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/guides/*.md)
foreach(guide ${guides})
  get_filename_component(name ${guide} NAME_WE)
  cli_test(guides.${name} guides 600 ${guide})
endforeach()

# Long tests; `make test` leaves them out.
cli_test(resume_long resume 3600 --long)
cli_test(prediction_long prediction 7200 --long)
set_tests_properties(cli.resume_long PROPERTIES LABELS "long;kills")
set_tests_properties(cli.prediction_long PROPERTIES LABELS "long;prediction")
set_tests_properties(cli.prediction cli.prediction_long PROPERTIES RUN_SERIAL TRUE)  # they take times
# It compares bounds that are 1 MiB apart. They contain measured buffers, and these differ on a busy machine.
set_tests_properties(cli.outlook PROPERTIES RUN_SERIAL TRUE)
add_test(NAME cli.budgets_long COMMAND ${CLI_PYTHON} ${CMAKE_SOURCE_DIR}/tests/cli/budgets.py $<TARGET_FILE:megalith>
         --table ${CMAKE_SOURCE_DIR}/docs/memory_bounds.md)
set_tests_properties(cli.budgets_long PROPERTIES LABELS "long;budgets" TIMEOUT 3600)
