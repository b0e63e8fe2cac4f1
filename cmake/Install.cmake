# `cmake --install build/release --prefix DIR` (docs/install.md). Programs find each other by protocol/layout.h, so nothing in
# here has a path of this machine in it, but two links in lib/footplate/: to LibTorch and to MPI.
# Components: client (needs neither LibTorch nor MPI), runtime, development; scripts/wheel packs them apart.
include(CMakePackageConfigHelpers)

add_custom_target(install_client)  # builds what the component needs
add_dependencies(install_client footplate footplate-console footplate-lua footplate_schema_file footplate_completions)
install(TARGETS footplate footplate-console footplate-lua RUNTIME DESTINATION bin COMPONENT client)
install(FILES ${PROJECT_BINARY_DIR}/share/footplate/schema.json DESTINATION share/footplate COMPONENT client)
install(DIRECTORY configs scripts/jobs DESTINATION share/footplate COMPONENT client)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/bash-completion ${PROJECT_BINARY_DIR}/share/zsh DESTINATION share COMPONENT client)
install(DIRECTORY docs DESTINATION share/doc/footplate COMPONENT client PATTERN __pycache__ EXCLUDE)
install(FILES README.md LICENSE CHANGELOG.md DESTINATION share/doc/footplate COMPONENT client)
# Of what is linked as an archive or compiled in; wheels have them among their metadata (packaging/wheels.py).
foreach(package libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libexpected-dev liblua5.4-dev libedit-dev libncurses-dev
        libbsd-dev libmd-dev libssl-dev libxxhash-dev zlib1g-dev)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/footplate/licenses RENAME ${package}.txt
          COMPONENT licenses OPTIONAL)
endforeach()

if(NOT FOOTPLATE_LIBTORCH)
  return()
endif()

add_custom_target(install_runtime)
add_dependencies(install_runtime footplate-rank)

# The links of lib/footplate/ are in the build tree, too: its programs have the RPATH of installed ones. CMake would fill up one of
# its own with empty elements, and the loader takes those for the folder that the program is started in.
# footplate_install_library(TARGET): what a rank opens where it needs it, in lib/; in bundles and wheels, too.
function(footplate_install_library target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON
                        INSTALL_RPATH "$ORIGIN/footplate/torch/lib:$ORIGIN/footplate/torch/../nvidia/cu13/lib")
  install(TARGETS ${target} LIBRARY DESTINATION lib COMPONENT runtime)
  add_dependencies(install_runtime ${target})
endfunction()
footplate_install_library(footplate_cuda)
footplate_install_library(footplate_python)
install(DIRECTORY runtime/python/footplate DESTINATION lib/python COMPONENT runtime PATTERN __pycache__ EXCLUDE)

set_target_properties(footplate-rank PROPERTIES BUILD_WITH_INSTALL_RPATH ON
                      INSTALL_RPATH "$ORIGIN/../lib/footplate/torch/lib:$ORIGIN/../lib/footplate/mpi/lib")
install(TARGETS footplate-rank RUNTIME DESTINATION bin COMPONENT runtime)
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/footplate\")
  file(MAKE_DIRECTORY \"\${folder}\")
  file(CREATE_LINK \"${FOOTPLATE_TORCH}\" \"\${folder}/torch\" SYMBOLIC)
  file(CREATE_LINK \"${FOOTPLATE_MPI}\" \"\${folder}/mpi\" SYMBOLIC)
  set(environment \"${FOOTPLATE_ENV}\")" COMPONENT links)
# Who builds as root has the environment in a home that nobody else may enter, and the prefix where all may.
install(CODE [[
  execute_process(COMMAND sh -c
    [=[closed() {
         at=$(realpath -e "$1") || return 0
         while [ "${#at}" -gt 1 ]; do find "$at" -maxdepth 0 ! -perm -o=x; at=$(dirname "$at"); done
       }
       if [ -z "$(closed "$1")" ]; then closed "$0"; fi]=]
    "${environment}" "${folder}" OUTPUT_VARIABLE closed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(closed)
    message(WARNING "Only you may enter ${closed}, where LibTorch and Open MPI are: nobody else can train with "
            "${CMAKE_INSTALL_PREFIX}. Build with FOOTPLATE_CACHE=DIR, a folder that all may read, for scripts/deps and the build.")
  endif()]] COMPONENT links)

# For those who build tasks: find_package(footplate).
set(FOOTPLATE_TORCH_VERSIONS "${FOOTPLATE_TORCH_VERSION}")
configure_file(cmake/footplateConfig.cmake.in package/footplateConfig.cmake @ONLY)
write_basic_package_version_file(package/footplateConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/footplateConfig.cmake ${PROJECT_BINARY_DIR}/package/footplateConfigVersion.cmake
              cmake/Task.cmake
        DESTINATION lib/cmake/footplate COMPONENT development)
install(DIRECTORY include/footplate DESTINATION include COMPONENT development)
