# What a build computes without training, as text: see README.md. Built by name only: `ninja -C build recording_dump`.
add_executable(recording_dump EXCLUDE_FROM_ALL
               ${CMAKE_SOURCE_DIR}/tests/recording/dump_main.cpp ${CMAKE_SOURCE_DIR}/tests/recording/dump_model.cpp
               ${CMAKE_SOURCE_DIR}/tests/recording/dump_schedules.cpp
               ${CMAKE_SOURCE_DIR}/tests/recording/dump_drawings.cpp)
target_include_directories(recording_dump PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_compile_options(recording_dump PRIVATE ${MEGALITH_WARNINGS} -O1)
target_link_libraries(recording_dump PRIVATE megalith_planner megalith_checkpoint)
