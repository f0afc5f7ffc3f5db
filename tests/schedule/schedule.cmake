# `make test` damages 1,000 schedules of one rank and 1,000 of several.
add_test(NAME schedule.mutants_long COMMAND test_schedule --gtest_filter=Mutation.Damaged*)
set_tests_properties(schedule.mutants_long PROPERTIES LABELS "long;mutants" TIMEOUT 3600
                     ENVIRONMENT MEGALITH_MUTANTS=50000)
