function(megalith_batches target)
  if(MEGALITH_BATCH GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MEGALITH_BATCH})
  endif()
endfunction()

# One library per folder of src/. A library sees the headers of the folders it names (and theirs),
# and nothing else: each folder's headers are reached through its own include root, so including
# against the arrow does not compile. WITHOUT leaves out files (a build without LibTorch, those that need it).
# Files are compiled in batches, because most of their time goes into common headers. APART lists those (patterns) that
# are compiled one by one: vectorised loops, where other neighbours could be inlined and change the last bit.
set(MEGALITH_BATCH 6 CACHE STRING "source files compiled together; 1: each by itself")
function(megalith_library name)
  cmake_parse_arguments(ARG "" "" "USES;LINKS;WITHOUT;APART" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  foreach(file ${ARG_WITHOUT})
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/src/${name}/${file})
  endforeach()
  set(root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${root}/${name} SYMBOLIC)
  if(sources)
    add_library(megalith_${name} STATIC ${sources})
    megalith_batches(megalith_${name})
    foreach(pattern ${ARG_APART})
      file(GLOB apart CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/${pattern})
      set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
    set(scope PUBLIC)
  else()
    add_library(megalith_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(megalith_${name} ${scope} ${root})
  foreach(used ${ARG_USES})
    target_link_libraries(megalith_${name} ${scope} megalith_${used})
  endforeach()
  target_link_libraries(megalith_${name} ${scope} ${ARG_LINKS})
  if(sources)
    target_compile_options(megalith_${name} PRIVATE ${MEGALITH_WARNINGS})
  endif()
endfunction()

# The torch wheel brings its own copies of some headers (fmt) on its include path, in other versions than the
# libraries we link. Ours are found first through this root.
set(MEGALITH_FIRST_HEADERS ${CMAKE_BINARY_DIR}/include/first)
file(MAKE_DIRECTORY ${MEGALITH_FIRST_HEADERS})
file(CREATE_LINK /usr/include/fmt ${MEGALITH_FIRST_HEADERS}/fmt SYMBOLIC)
include_directories(${MEGALITH_FIRST_HEADERS})

add_library(megalith_source_folder STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/source_folder.cpp)
target_compile_definitions(megalith_source_folder PRIVATE MEGALITH_SOURCE_FOLDER="${CMAKE_SOURCE_DIR}")

add_library(megalith_test_main STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/test_main.cpp)
target_compile_options(megalith_test_main PRIVATE ${MEGALITH_WARNINGS})
target_link_libraries(megalith_test_main PUBLIC GTest::gtest)

# tests/<folder>/*_test.cpp become one program, test_<folder>. ctest runs it as SHARDS processes that take every
# SHARDS-th test each (default 1): loading LibTorch takes longer than most tests. Choose SHARDS so that none takes more
# than about two minutes. tests/test_main.cpp names each failure.
function(megalith_tests name)
  cmake_parse_arguments(ARG "" "SHARDS" "USES;WITHOUT" ${ARGN})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cpp)
  foreach(file ${ARG_WITHOUT})
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/tests/${name}/${file})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(test_${name} PRIVATE ${MEGALITH_WARNINGS} -O1)  # a seventh less to compile; what is fast is tested
  target_link_libraries(test_${name} PRIVATE megalith_${name} megalith_source_folder megalith_test_main)
  foreach(used ${ARG_USES})
    target_link_libraries(test_${name} PRIVATE megalith_${used})
  endforeach()
  foreach(number RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${number} - 1")
    set(test ${name}.${number}_of_${ARG_SHARDS})
    add_test(NAME ${test} COMMAND test_${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT 1200  # of all tests; test_main.cpp ends one that hangs before
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
