# Measured processes of `make bench`; not part of the default build.
add_executable(bench_step EXCLUDE_FROM_ALL bench/megalith_step.cpp)
target_link_libraries(bench_step PRIVATE megalith_planner)
add_executable(bench_machine EXCLUDE_FROM_ALL bench/machine.cpp)
target_link_libraries(bench_machine PRIVATE fmt::fmt torch_libs)
find_package(benchmark QUIET)  # scripts/bench installs it
if(benchmark_FOUND)
  add_executable(bench_kernels EXCLUDE_FROM_ALL bench/kernels.cpp)
  target_link_libraries(bench_kernels PRIVATE megalith_model megalith_optim benchmark::benchmark)
endif()
add_executable(first_loss EXCLUDE_FROM_ALL bench/spill/first_loss.cpp)
target_link_libraries(first_loss PRIVATE megalith_run)
add_executable(bench_all_reduce EXCLUDE_FROM_ALL bench/comm/all_reduce.cpp)
target_link_libraries(bench_all_reduce PRIVATE megalith_comm)
