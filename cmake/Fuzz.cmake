# libFuzzer targets for the parsers that read untrusted files (clang only; see scripts/fuzz).
foreach(parser config safetensors)
  add_executable(${parser}_fuzz fuzz/${parser}_fuzz.cpp)
  target_link_options(${parser}_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
endforeach()
target_link_libraries(config_fuzz PRIVATE megalith_config)
target_link_libraries(safetensors_fuzz PRIVATE megalith_checkpoint)
