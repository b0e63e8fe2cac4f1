# What nearly every file includes, compiled once, in the sanitizer presets: a third of a file's time. Headers that are in
# there are included where they are used all the same. Not in release: out of precompiled headers GCC 12 warns of the standard
# library's own text (array-bounds, stringop-overflow), and clang-tidy can't read them.
if(NOT FOOTPLATE_SANITIZE)
  function(footplate_precompile)
  endfunction()
  function(footplate_precompile_test name)
  endfunction()
  return()
endif()

set(FOOTPLATE_PRECOMPILED <algorithm> <chrono> <filesystem> <functional> <map> <memory> <nlohmann/json.hpp> <optional> <set>
    <string> <string_view> <tl/expected.hpp> <vector>)
add_library(footplate_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(footplate_precompiled PRIVATE footplate_flags)
target_precompile_headers(footplate_precompiled PRIVATE ${FOOTPLATE_PRECOMPILED})

add_library(footplate_precompiled_tests OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(footplate_precompiled_tests PRIVATE footplate_flags GTest::gtest GTest::gmock)
target_precompile_headers(footplate_precompiled_tests PRIVATE ${FOOTPLATE_PRECOMPILED} <gmock/gmock.h> <gtest/gtest.h>)

function(footplate_precompile_test name)
  target_precompile_headers(${name} REUSE_FROM footplate_precompiled_tests)
endfunction()

# Every target of the project that doesn't include LibTorch.
function(footplate_precompile)
  foreach(name protocol lua_config lua_api reference client attach host launch doctor metrics schema_table threads control state checkpoint saver comm
          comm_mpi sim_run)
    if(TARGET footplate_${name})
      target_precompile_headers(footplate_${name} REUSE_FROM footplate_precompiled)
    endif()
  endforeach()
  foreach(program footplate footplate-console footplate-lua footplate-rank footplate-fake-console)
    if(TARGET ${program})
      target_precompile_headers(${program} REUSE_FROM footplate_precompiled)
    endif()
  endforeach()
endfunction()
