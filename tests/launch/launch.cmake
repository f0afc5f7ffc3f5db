# Starting, watching and surviving, with ranks that do nothing but wait for each other over MPI.
find_package(MPI COMPONENTS CXX)
find_program(LAUNCH_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(NOT MPI_CXX_FOUND OR NOT LAUNCH_PYTHON)
  return()
endif()
add_executable(fake_run tests/launch/tools/fake_run.cpp)
target_compile_options(fake_run PRIVATE ${MEGALITH_WARNINGS})
target_link_libraries(fake_run PRIVATE megalith_launch MPI::MPI_CXX CLI11::CLI11)

foreach(script faults)
  add_test(NAME launch.${script} COMMAND ${LAUNCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/launch/${script}.py $<TARGET_FILE:fake_run>)
  set_tests_properties(launch.${script} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
endforeach()
