# What nearly every file includes, compiled once: a third of a file's time. Headers that are in there are included where
# they are used all the same; clang-tidy, which can't read GCC's, sees to that (scripts/lint).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  function(footplate_precompile from)
  endfunction()
  return()
endif()
# Out of precompiled headers GCC 12 warns of the standard library's own text.
target_compile_options(footplate_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                       -Wno-maybe-uninitialized)

set(FOOTPLATE_PRECOMPILED <algorithm> <chrono> <filesystem> <functional> <map> <memory> <nlohmann/json.hpp> <optional> <set>
    <string> <string_view> <tl/expected.hpp> <vector>)

# footplate_precompiled_NAME: options of the compiler, then, after HEADERS, headers beside those.
function(footplate_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "OPTIONS;HEADERS;LIBRARIES")
  set(target footplate_precompiled_${name})
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(${target} PRIVATE footplate_flags ${ARG_LIBRARIES})
  target_compile_options(${target} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${target} PRIVATE ${FOOTPLATE_PRECOMPILED} ${ARG_HEADERS})
endfunction()
footplate_precompiled(runtime)
footplate_precompiled(console OPTIONS ${FOOTPLATE_COLD})
# CLI11 is as large as all of the above.
footplate_precompiled(cli OPTIONS ${FOOTPLATE_COLD} HEADERS <CLI/CLI.hpp>)
# As in Testing.cmake.
footplate_precompiled(tests OPTIONS -O0 HEADERS <gmock/gmock.h> <gtest/gtest.h> LIBRARIES GTest::gtest GTest::gmock)

# footplate_precompile(FROM targets…): those that are there, with the precompiled headers of FROM.
function(footplate_precompile from)
  foreach(name ${ARGN})
    if(TARGET ${name})
      target_precompile_headers(${name} REUSE_FROM ${from})
    endif()
  endforeach()
endfunction()
