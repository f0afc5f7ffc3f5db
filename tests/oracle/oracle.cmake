# Comparisons with Hugging Face transformers and PyTorch; they need the references that `make test` installs.
add_executable(probe tests/oracle/probe.cpp)
target_link_libraries(probe PRIVATE megalith_inference)
add_executable(generation_probe tests/oracle/generation_probe.cpp)
target_link_libraries(generation_probe PRIVATE megalith_inference)
find_program(ORACLE_PYTHON python PATHS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
if(ORACLE_PYTHON)
  foreach(arch gpt2 llama kin experts bert)
    add_test(NAME oracle.transformers.${arch}
             COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/oracle/transformers_agreement.py ${arch}
                     $<TARGET_FILE:probe>)
    set_tests_properties(oracle.transformers.${arch} PROPERTIES TIMEOUT 600)
  endforeach()
  foreach(arch gpt2 llama bert)
    add_test(NAME oracle.token_dropping.${arch}
             COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/oracle/token_dropping_agreement.py ${arch}
                     $<TARGET_FILE:probe>)
    set_tests_properties(oracle.token_dropping.${arch} PROPERTIES TIMEOUT 600)
  endforeach()
  add_test(NAME oracle.generation
           COMMAND ${ORACLE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/oracle/generation_agreement.py
                   $<TARGET_FILE:generation_probe>)
  set_tests_properties(oracle.generation PROPERTIES TIMEOUT 600)
endif()
