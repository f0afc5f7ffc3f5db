# Starting, watching and surviving, with ranks that do nothing but wait for each other over MPI.
find_program(LAUNCH_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT LAUNCH_PYTHON)
  return()
endif()
add_executable(fake_run tests/launch/tools/fake_run.cpp)
target_compile_options(fake_run PRIVATE ${MEGALITH_WARNINGS})
target_compile_definitions(fake_run PRIVATE OMPI_SKIP_MPICXX)
target_link_libraries(fake_run PRIVATE megalith_launch MPI::MPI_C CLI11::CLI11)

function(launch_test script)
  add_test(NAME launch.${script}
           COMMAND ${LAUNCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/launch/${script}.py $<TARGET_FILE:fake_run> ${ARGN})
  set_tests_properties(launch.${script} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
endfunction()

launch_test(faults)
launch_test(hosts)
launch_test(slurm $<TARGET_FILE:megalith>)
