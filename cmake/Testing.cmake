# footplate_test(NAME SOURCES a.cpp … LIBRARIES x … [LABELS unit] [SHARDS 2]): one GoogleTest program, one CTest test, or as
# many as SHARDS says, each with its part of the program's tests, so that they run side by side.
# footplate_test_library(NAME SOURCES … LIBRARIES …): what several of them share.
set(FOOTPLATE_PYTHON /usr/bin/python3 CACHE FILEPATH "Python that runs the tests with several processes or a terminal")

function(footplate_test_flags name)
  target_link_libraries(${name} PUBLIC GTest::gtest GTest::gmock PRIVATE footplate_flags)
  # What a test says, not what it tests: compiled in half of the time.
  target_compile_options(${name} PRIVATE -O0)
  footplate_unity(${name})
  footplate_precompile(footplate_precompiled_tests ${name})
endfunction()

function(footplate_test_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES")
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LIBRARIES})
  footplate_test_flags(${name})
endfunction()

function(footplate_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT;SHARDS" "SOURCES;LIBRARIES;LABELS")
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gtest_main)
  footplate_test_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name})
    if(shard GREATER 0)
      set(test ${name}_${shard})
    endif()
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
