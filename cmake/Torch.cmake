# LibTorch: TORCH_DIR (a LibTorch or a torch package folder) or the wheel in .venv.
# torch_cpu and c10 are linked directly: the wheel's own CMake files ask for a CUDA toolkit in the CUDA build.
set(TORCH_DIR "$ENV{TORCH_DIR}" CACHE PATH "folder with include/ and lib/libtorch_cpu.so")
if(NOT TORCH_DIR)
  file(GLOB candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python3.*/site-packages/torch)
  list(GET candidates 0 TORCH_DIR)
endif()
if(NOT EXISTS ${TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no LibTorch in '${TORCH_DIR}': run scripts/setup, or set TORCH_DIR to a folder "
                      "with include/ and lib/libtorch_cpu.so")
endif()
add_library(torch_libs INTERFACE)
target_include_directories(torch_libs SYSTEM INTERFACE ${TORCH_DIR}/include
                           ${TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(torch_libs INTERFACE ${TORCH_DIR}/lib)
target_link_libraries(torch_libs INTERFACE torch_cpu c10)
target_link_options(torch_libs INTERFACE -Wl,-rpath,${TORCH_DIR}/lib)
# at::parallel_for is inlined into the caller and runs serially unless the caller is compiled with OpenMP. There
# must be one OpenMP runtime in the process: the one that libtorch loads.
target_compile_options(torch_libs INTERFACE -fopenmp)
file(GLOB torch_openmp ${TORCH_DIR}/lib/libgomp*.so* ${TORCH_DIR}/../torch.libs/libgomp*.so*)
if(torch_openmp)
  list(GET torch_openmp 0 torch_openmp)
else()
  set(torch_openmp gomp)
endif()
target_link_libraries(torch_libs INTERFACE ${torch_openmp})
# Our tiled kernels call BLAS by its standard name. The wheels contain it; another LibTorch may use the one of the system.
include(CheckFunctionExists)
set(CMAKE_REQUIRED_LIBRARIES ${TORCH_DIR}/lib/libtorch_cpu.so ${TORCH_DIR}/lib/libc10.so ${torch_openmp})
check_function_exists(sgemm_ TORCH_CARRIES_BLAS)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT TORCH_CARRIES_BLAS)
  find_package(BLAS REQUIRED)
  target_link_libraries(torch_libs INTERFACE ${BLAS_LIBRARIES})
endif()
