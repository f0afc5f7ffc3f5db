# Scripts that compare with other programs' readers and writers, and those that run the binary on the examples. They
# need the references that `make test` puts into .venv.
include(tests/checkpoint/checkpoint.cmake OPTIONAL)
include(tests/report/report.cmake OPTIONAL)

add_executable(encode_main tests/text/tools/encode_main.cpp)
target_link_libraries(encode_main PRIVATE megalith_text)
add_executable(shard_main tests/text/tools/shard_main.cpp)
target_link_libraries(shard_main PRIVATE megalith_text)
add_executable(pacing_main tests/data/tools/pacing_main.cpp)
target_link_libraries(pacing_main PRIVATE megalith_data)
find_program(ORACLE_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(ORACLE_PYTHON)
  add_test(NAME text.hugging_face_agreement
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/text/hf_agreement.py --program $<TARGET_FILE:encode_main>)
  add_test(NAME text.megatron_agreement
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/text/megatron_agreement.py $<TARGET_FILE:shard_main>)
  add_test(NAME data.deepspeed_agreement
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/data/deepspeed_agreement.py $<TARGET_FILE:megalith>
                   $<TARGET_FILE:pacing_main>)
  set_tests_properties(data.deepspeed_agreement PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME text.file_agreement
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/text/file_agreement.py --program $<TARGET_FILE:encode_main>)
  # All of the corpus and 100,000 hostile strings.
  add_test(NAME text.hugging_face_agreement_long
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/text/hf_agreement.py --program $<TARGET_FILE:encode_main>
                   --strings 100000 --everything --seed 11)
  add_test(NAME text.file_agreement_long
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/text/file_agreement.py --program $<TARGET_FILE:encode_main>
                   --strings 100000 --everything --seed 12)
  set_tests_properties(text.hugging_face_agreement_long text.file_agreement_long PROPERTIES
                       LABELS "long;text" TIMEOUT 7200 SKIP_RETURN_CODE 77)
  add_test(NAME cli.examples
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/cli/examples.py $<TARGET_FILE:megalith>)
  set_tests_properties(text.hugging_face_agreement text.file_agreement text.megatron_agreement cli.examples PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
