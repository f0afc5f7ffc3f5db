# Starting, watching and surviving, with ranks that do nothing but wait for each other over MPI.
find_program(LAUNCH_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT LAUNCH_PYTHON)
  return()
endif()
add_executable(fake_run tests/launch/tools/fake_run.cpp)
target_compile_options(fake_run PRIVATE ${MEGALITH_WARNINGS})
target_compile_definitions(fake_run PRIVATE OMPI_SKIP_MPICXX)
target_link_libraries(fake_run PRIVATE megalith_launch MPI::MPI_C CLI11::CLI11)
add_dependencies(fake_run megalith-bind)

function(launch_test name script)
  add_test(NAME launch.${name} COMMAND ${LAUNCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/launch/${script}.py ${ARGN})
  set_tests_properties(launch.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
endfunction()

launch_test(faults faults $<TARGET_FILE:fake_run>)
launch_test(training training $<TARGET_FILE:megalith>)

# Long tests. Two of them need more rights than most machines give: network namespaces, Slurm's daemons.
launch_test(hosts hosts $<TARGET_FILE:fake_run> $<TARGET_FILE:megalith>)
launch_test(slurm slurm $<TARGET_FILE:fake_run> $<TARGET_FILE:megalith>)
launch_test(training_long training $<TARGET_FILE:megalith> --long)
set_tests_properties(launch.hosts launch.slurm PROPERTIES LABELS "long;hosts" TIMEOUT 3600)
set_tests_properties(launch.training_long PROPERTIES LABELS "long;kills" TIMEOUT 3600)
