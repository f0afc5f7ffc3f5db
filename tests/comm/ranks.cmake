# Tests that need several ranks: tests/comm/ranks/*.cpp become one program, run by mpirun over loopback with as many
# ranks as asked for, and as if they were on hosts of `per_host` ranks (0: one host, as it is).
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/comm/ranks/*.cpp)
add_executable(test_ranks ${sources})
target_include_directories(test_ranks PRIVATE ${CMAKE_SOURCE_DIR}/tests/comm)
target_compile_options(test_ranks PRIVATE ${MEGALITH_WARNINGS})
target_link_libraries(test_ranks PRIVATE megalith_comm GTest::gtest)

function(ranks_test ranks per_host)
  set(name comm.ranks_${ranks})
  if(per_host)
    string(APPEND name _hosts_of_${per_host})
  endif()
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n ${ranks}
                                $<TARGET_FILE:test_ranks>)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_btl_tcp_if_include=lo;OMPI_MCA_oob_tcp_if_include=lo;MEGALITH_PRETEND_RANKS_PER_HOST=${per_host};ASAN_OPTIONS=detect_leaks=0")
endfunction()
add_test(NAME comm.ranks_alone COMMAND test_ranks)
foreach(ranks 1 2 3 4 8)
  ranks_test(${ranks} 0)
endforeach()
ranks_test(2 1)
ranks_test(3 2)
ranks_test(4 2)
ranks_test(8 3)
