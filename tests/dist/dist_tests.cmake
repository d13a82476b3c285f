# SPDX-License-Identifier: Apache-2.0
# Ranks as threads, and the same tests over ranks that mpirun starts. More ranks than cores are right and slow: 4 and 8 run by night.
clutch_add_test(dist SOURCES dist/dist_test.cpp dist/symmetric_test.cpp dist/training_test.cpp $<TARGET_OBJECTS:clutch_dist_objects> ENVIRONMENT "POCL_DEVICES=pthread" LABELS quick TIMEOUT 300)
target_link_libraries(test_dist PRIVATE MPI::MPI_C)
clutch_add_test(sharded SOURCES dist/functional_test.cpp dist/sharded_test.cpp dist/checkpoint_test.cpp $<TARGET_OBJECTS:clutch_dist_objects> ENVIRONMENT "POCL_DEVICES=pthread" LABELS quick TIMEOUT 300)
target_link_libraries(test_sharded PRIVATE MPI::MPI_C)
set(mpirun mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none)
function(clutch_add_mpi_test name ranks)
  cmake_parse_arguments(arg "" "" "LABELS;OPTIONS" ${ARGN})
  add_test(NAME ${name} COMMAND ${mpirun} ${arg_OPTIONS} -np ${ranks} $<TARGET_FILE:test_dist>)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "${arg_LABELS}" PROCESSORS 2
                       ENVIRONMENT "${test_environment};POCL_DEVICES=pthread;POCL_MAX_PTHREAD_COUNT=1")
endfunction()
clutch_add_mpi_test(dist_2_ranks 2 LABELS quick)
clutch_add_mpi_test(dist_3_ranks 3 LABELS mpi)
clutch_add_mpi_test(dist_4_ranks 4 LABELS nightly)
clutch_add_mpi_test(dist_8_ranks 8 LABELS nightly)
clutch_add_mpi_test(dist_tcp 2 LABELS nightly OPTIONS --mca btl tcp,self)
