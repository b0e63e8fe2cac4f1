# Several files in one translation unit: what takes time is the JSON and LibTorch templates that each makes anew, so that
# a clean build takes half as long. `cmake -DFOOTPLATE_UNITY=OFF` for one file at a time, which is what scripts/lint reads.
option(FOOTPLATE_UNITY "Compile several files of a target as one" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)

# A type of a .cpp with members from its unnamed namespace: GCC takes it for a header's.
if(FOOTPLATE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(footplate_flags INTERFACE -Wno-subobject-linkage)
endif()

function(footplate_unity)
  foreach(name ${ARGN})
    if(TARGET ${name})
      set_target_properties(${name} PROPERTIES UNITY_BUILD ${FOOTPLATE_UNITY})
    endif()
  endforeach()
endfunction()
