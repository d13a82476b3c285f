# SPDX-License-Identifier: Apache-2.0
# The tests that need no device, for machines that run under an emulator (CLUTCH_HOST_TESTS, by scripts/cross). Of files that have others besides, those that need
# none are named.
clutch_add_test(selector SOURCES runtime/selector_test.cpp)
clutch_add_test(dtype SOURCES runtime/dtype_test.cpp)
clutch_add_test(settings SOURCES runtime/settings_test.cpp)
clutch_add_test(heap SOURCES runtime/heap_test.cpp runtime/replay_test.cpp ${memory_replay})
target_compile_definitions(test_heap PRIVATE CLUTCH_TESTS_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")
clutch_add_test(expr SOURCES expr/expr_test.cpp expr/dependence_test.cpp)
clutch_add_test(memory_plan SOURCES graph/memory_plan_test.cpp)
clutch_add_test(random SOURCES ops/random_test.cpp ARGUMENTS "--gtest_filter=Random.ElementaryFunctionsKeepTheirBounds:Random.SelectionByTraitsAlone")
clutch_add_test(fuzz SOURCES fuzz/fuzz_test.cpp ${json_input} ${memory_replay}
                ARGUMENTS "--gtest_filter=-Fuzz.FilesOfTensors")
target_include_directories(test_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/bench)
target_link_libraries(test_fuzz PRIVATE nlohmann_json::nlohmann_json)
clutch_add_test(schedules SOURCES dist/schedule_test.cpp ${schedule_objects})

# What follows is written for POSIX: processes, modes of files, drivers as shared libraries.
if(WIN32)
  return()
endif()
set(alone EntriesOf* ManyWriters* FoldersAndFiles* WhatOthersMay* LinksAre* TheLeastRecently* ALimitTakes* UsageAndClearing ProcessesShare*)
list(TRANSFORM alone PREPEND "Cache.*")
list(JOIN alone ":" alone)
clutch_add_test(cache SOURCES runtime/cache_test.cpp ENVIRONMENT "CLUTCH_CACHE=on" ARGUMENTS "--gtest_filter=${alone}")
# On the driver in plain C++, whose kernels do nothing but fill and copy: not what waits for the results of others.
add_library(clutch_stub_driver MODULE stub/stub_driver.cpp)
target_link_libraries(clutch_stub_driver PRIVATE clutch_warnings OpenCL::OpenCL Threads::Threads)
set(stub "OCL_ICD_VENDORS=$<TARGET_FILE:clutch_stub_driver>" "CLUTCH_SELF_TEST=off" "CLUTCH_POISON_SCRATCH=0")
clutch_add_test(hammer SOURCES runtime/hammer_test.cpp ENVIRONMENT ${stub})
clutch_add_test(allocator SOURCES runtime/allocator_test.cpp ENVIRONMENT ${stub})
clutch_add_test(stream SOURCES runtime/stream_test.cpp ENVIRONMENT ${stub} ARGUMENTS "--gtest_filter=-Streams.ManyLaunchesWithoutWaiting:Streams.CommandsWithoutEvents*")
clutch_add_test(files SOURCES interop/files_test.cpp ENVIRONMENT ${stub}
                ARGUMENTS "--gtest_filter=Npy.WritesWhatNumpyWrites:Npy.Refuses*:Safetensors.ReadsByTheRules*:Safetensors.Refuses*")
clutch_add_test(fuzz_files PROGRAM test_fuzz ENVIRONMENT ${stub} ARGUMENTS "--gtest_filter=Fuzz.FilesOfTensors")
