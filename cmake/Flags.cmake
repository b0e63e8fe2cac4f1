# What every target of the project is compiled with. LibTorch's own warnings are kept out by -idirafter
# and SYSTEM (Dependencies.cmake).
find_package(Threads REQUIRED)
add_library(footplate_flags INTERFACE)
target_include_directories(footplate_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(footplate_flags INTERFACE -Wall -Wextra -Wconversion -Werror)
target_link_libraries(footplate_flags INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Its version 12 sees overlapping copies in "text" + std::string (PR 105651); there are none.
  target_compile_options(footplate_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(footplate_flags INTERFACE -Wthread-safety)
endif()
# What waits for people, files and sockets: a quarter less time to compile.
set(FOOTPLATE_COLD $<$<CONFIG:Release>:-O1>)
if(FOOTPLATE_SANITIZE)
  # Little optimization, lines only, and what the address sanitizer sees at the access itself left to it: compiles in a
  # third of the time of -O2 -g with everything.
  target_compile_options(footplate_flags INTERFACE -fsanitize=${FOOTPLATE_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  if(FOOTPLATE_CONSOLE_ONLY)
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -g1")  # its tests mostly wait
  endif()
  if(FOOTPLATE_SANITIZE MATCHES "undefined")
    target_compile_options(footplate_flags INTERFACE -fno-sanitize=null,vptr,alignment,object-size)
  endif()
  target_link_options(footplate_flags INTERFACE -fsanitize=${FOOTPLATE_SANITIZE})
endif()
if(FOOTPLATE_FUZZ)  # libFuzzer follows what it runs; its main comes with tests/fuzz
  target_compile_options(footplate_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
