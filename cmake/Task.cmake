# What a task is built with. The project's own build includes this file, and so does find_package(footplate).

# footplate_libtorch_version(VARIABLE FOLDER): "2.11.0", as its headers say; empty where there is no LibTorch.
function(footplate_libtorch_version variable folder)
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # new, old
    if(NOT version AND EXISTS "${folder}/include/${header}")
      file(READ "${folder}/include/${header}" text)
      if(text MATCHES "VERSION_MAJOR ([0-9]+).*VERSION_MINOR ([0-9]+).*VERSION_PATCH ([0-9]+)")
        set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      endif()
    endif()
  endforeach()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# footplate_task_library(NAME FOLDER HEADERS): a library without a file, with the LibTorch in FOLDER (include/ and lib/) and
# footplate's own headers.
function(footplate_task_library name folder headers)
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE "${headers}")
  # -idirafter: LibTorch's include folder carries its own fmt, which Debian's spdlog doesn't compile with.
  # SHELL: keeps CMake from dropping the second -idirafter as a duplicate; the quotes keep blanks in a path.
  target_compile_options(${name} INTERFACE "SHELL:-idirafter \"${folder}/include\""
                         "SHELL:-idirafter \"${folder}/include/torch/csrc/api/include\"")
  # LibTorch's headers then include single operators instead of all two thousand.
  target_compile_definitions(${name} INTERFACE AT_PER_OPERATOR_HEADERS)
  target_compile_features(${name} INTERFACE cxx_std_20)
  target_link_libraries(${name} INTERFACE "${folder}/lib/libtorch_cpu.so" "${folder}/lib/libc10.so")
endfunction()

# footplate_add_task(NAME SOURCES…): a plugin for run.task = "plugin:…/NAME.so". It needs LibTorch and footplate's headers,
# and no symbol of footplate's. It has no path of LibTorch's in it: the rank that opens it has LibTorch already.
function(footplate_add_task name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE footplate::task)
  target_link_options(${name} PRIVATE LINKER:--no-undefined)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON SKIP_BUILD_RPATH ON)
  # Without a build type CMake doesn't optimize at all.
  target_compile_options(${name} PRIVATE $<$<CONFIG:>:-O2>)
  if(FOOTPLATE_TASKS)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${FOOTPLATE_TASKS}")
  endif()
endfunction()
