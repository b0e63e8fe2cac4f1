# What nearly every file includes, compiled once: a third of a file's time. Headers that are in there are included where
# they are used all the same; clang-tidy, which can't read GCC's, sees to that (scripts/lint).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  function(footplate_precompile)
  endfunction()
  function(footplate_precompile_test name)
  endfunction()
  return()
endif()
# Out of precompiled headers GCC 12 warns of the standard library's own text.
target_compile_options(footplate_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                       -Wno-maybe-uninitialized)

set(FOOTPLATE_PRECOMPILED <algorithm> <chrono> <filesystem> <functional> <map> <memory> <nlohmann/json.hpp> <optional> <set>
    <string> <string_view> <tl/expected.hpp> <vector>)
add_library(footplate_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(footplate_precompiled PRIVATE footplate_flags)
target_precompile_headers(footplate_precompiled PRIVATE ${FOOTPLATE_PRECOMPILED})

add_library(footplate_precompiled_tests OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(footplate_precompiled_tests PRIVATE footplate_flags GTest::gtest GTest::gmock)
target_compile_options(footplate_precompiled_tests PRIVATE -O0)  # as in Testing.cmake
target_precompile_headers(footplate_precompiled_tests PRIVATE ${FOOTPLATE_PRECOMPILED} <gmock/gmock.h> <gtest/gtest.h>)

function(footplate_precompile_test name)
  target_precompile_headers(${name} REUSE_FROM footplate_precompiled_tests)
endfunction()

# The command line's: CLI11 is as large as all of the above.
add_library(footplate_precompiled_cli OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(footplate_precompiled_cli PRIVATE footplate_flags)
target_precompile_headers(footplate_precompiled_cli PRIVATE ${FOOTPLATE_PRECOMPILED} <CLI/CLI.hpp>)

# Every target of the project that doesn't include LibTorch.
function(footplate_precompile)
  foreach(name protocol network lua_config lua_api reference client attach host launch doctor metrics schema_table threads control nccl state checkpoint saver comm
          comm_mpi sim_run)
    if(TARGET footplate_${name})
      target_precompile_headers(footplate_${name} REUSE_FROM footplate_precompiled)
    endif()
  endforeach()
  foreach(program footplate-lua footplate-fake-console)
    if(TARGET ${program})
      target_precompile_headers(${program} REUSE_FROM footplate_precompiled)
    endif()
  endforeach()
  foreach(program footplate footplate-console)
    if(TARGET ${program})
      target_precompile_headers(${program} REUSE_FROM footplate_precompiled_cli)
    endif()
  endforeach()
endfunction()
