# Our files against Hugging Face's packages, where the test references are installed.
add_executable(checkpoint_tool ${CMAKE_SOURCE_DIR}/tests/checkpoint/tools/checkpoint_tool.cpp)
target_compile_options(checkpoint_tool PRIVATE ${MEGALITH_WARNINGS})
target_link_libraries(checkpoint_tool PRIVATE megalith_tools)
add_test(NAME checkpoint.SafetensorsAgreement
         COMMAND ${CMAKE_SOURCE_DIR}/.venv/bin/python
                 ${CMAKE_SOURCE_DIR}/tests/checkpoint/safetensors_agreement.py $<TARGET_FILE:checkpoint_tool>)
set_tests_properties(checkpoint.SafetensorsAgreement PROPERTIES TIMEOUT 300)
