# Libraries from Debian, and LibTorch and Open MPI from the environment that scripts/deps made.
# docs/dependencies.md has each one's reason.
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# The small ones are linked as archives: what is built here then needs only the C and C++ libraries, LibTorch and MPI where it
# runs, whatever distribution that is (scripts/wheel, docs/install.md).
set(OPENSSL_USE_STATIC_LIBS ON)
if(OPENSSL_CRYPTO_LIBRARY MATCHES "\\.so$")  # found before that was said
  unset(OPENSSL_CRYPTO_LIBRARY CACHE)
endif()
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
function(footplate_find_archive variable name)
  find_library(${variable} NAMES lib${name}.a ${name} REQUIRED)
endfunction()

# Debian has no archive of fmt's: its one source file is compiled here. spdlog's headers are compiled where they are included.
find_path(FOOTPLATE_FMT_INCLUDE fmt/format-inl.h REQUIRED)
add_library(footplate_fmt STATIC cmake/fmt_library.cpp)
set_target_properties(footplate_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(fmt::fmt ALIAS footplate_fmt)
find_path(FOOTPLATE_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
add_library(footplate_spdlog INTERFACE)
target_compile_definitions(footplate_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(footplate_spdlog INTERFACE footplate_fmt Threads::Threads)
add_library(spdlog::spdlog ALIAS footplate_spdlog)

find_path(FOOTPLATE_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(footplate_xxhash INTERFACE)
target_compile_definitions(footplate_xxhash INTERFACE XXH_INLINE_ALL)
set(FOOTPLATE_XXHASH footplate_xxhash)

footplate_find_archive(FOOTPLATE_ZLIB_ARCHIVE z)
find_path(FOOTPLATE_ZLIB_INCLUDE zlib.h REQUIRED)
add_library(footplate_zlib INTERFACE)
target_include_directories(footplate_zlib SYSTEM INTERFACE ${FOOTPLATE_ZLIB_INCLUDE})
target_link_libraries(footplate_zlib INTERFACE ${FOOTPLATE_ZLIB_ARCHIVE})

find_path(FOOTPLATE_LUA_INCLUDE lua.hpp PATH_SUFFIXES lua5.4 REQUIRED)
footplate_find_archive(FOOTPLATE_LUA_ARCHIVE lua5.4-c++)
add_library(footplate_lua_library INTERFACE)
target_include_directories(footplate_lua_library SYSTEM INTERFACE ${FOOTPLATE_LUA_INCLUDE})
target_link_libraries(footplate_lua_library INTERFACE ${FOOTPLATE_LUA_ARCHIVE} ${CMAKE_DL_LIBS})

# What a line at the prompt is edited with, and what its archive needs.
foreach(name edit tinfo bsd md)
  string(TOUPPER FOOTPLATE_LIB${name} variable)
  footplate_find_archive(${variable} ${name})
  list(APPEND FOOTPLATE_EDIT_ARCHIVES ${${variable}})
endforeach()

if(FOOTPLATE_LIBTORCH)
  file(GLOB FOOTPLATE_SITE_PACKAGES "${FOOTPLATE_ENV}/lib/python3*/site-packages")
  set(FOOTPLATE_TORCH "${FOOTPLATE_SITE_PACKAGES}/torch" CACHE PATH "LibTorch's folder (include/ and lib/)")
  if(NOT EXISTS "${FOOTPLATE_TORCH}/lib/libtorch_cpu.so")
    set(tried "'${FOOTPLATE_TORCH}', of the environment '${FOOTPLATE_ENV}'")
    unset(FOOTPLATE_TORCH CACHE)  # the next try looks again
    unset(FOOTPLATE_ENV CACHE)
    message(FATAL_ERROR "no LibTorch in ${tried}: run scripts/deps, or pass -DFOOTPLATE_TORCH=DIR")
  endif()
  file(GLOB FOOTPLATE_CUDA_LIB "${FOOTPLATE_SITE_PACKAGES}/nvidia/cu13/lib")
  # Beside bin/ as in a prefix: where programs look for mpirun (protocol/layout.h), and what `cmake --install` makes as well.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/footplate)
  file(CREATE_LINK ${FOOTPLATE_TORCH} ${PROJECT_BINARY_DIR}/lib/footplate/torch SYMBOLIC)
  footplate_libtorch_version(FOOTPLATE_TORCH_VERSION "${FOOTPLATE_TORCH}")

  # What tasks are built with, as find_package(footplate) has it (Task.cmake), and what the project's own libraries need besides.
  footplate_task_library(footplate_task "${FOOTPLATE_TORCH}" ${PROJECT_SOURCE_DIR}/include)
  add_library(footplate::task ALIAS footplate_task)
  add_library(footplate_torch INTERFACE)
  target_link_libraries(footplate_torch INTERFACE footplate_task)
  # Its assertions name their files: from torch/ on, not from where it was installed.
  target_compile_options(footplate_torch INTERFACE "-ffile-prefix-map=${FOOTPLATE_TORCH}=torch")
  # libtorch_cpu.so itself needs the CUDA runtime and CUPTI, and finds them from where it is; nothing of ours refers to them.
  target_link_options(footplate_torch INTERFACE "LINKER:-rpath-link,${FOOTPLATE_CUDA_LIB}" "LINKER:--disable-new-dtags")

  # LibTorch's CUDA part, for libfootplate_cuda.so alone. What it needs of cuBLAS, cuDNN and others is there where it runs
  # (scripts/deps --cuda), not where it is linked.
  add_library(footplate_torch_cuda INTERFACE)
  target_include_directories(footplate_torch_cuda SYSTEM INTERFACE ${FOOTPLATE_SITE_PACKAGES}/nvidia/cu13/include)
  file(GLOB FOOTPLATE_CUDART "${FOOTPLATE_CUDA_LIB}/libcudart.so.*")
  target_link_options(footplate_torch_cuda INTERFACE "LINKER:--allow-shlib-undefined,--no-undefined,--no-as-needed")
  target_link_libraries(footplate_torch_cuda INTERFACE footplate_torch ${FOOTPLATE_TORCH}/lib/libtorch_cuda.so
                        ${FOOTPLATE_TORCH}/lib/libc10_cuda.so ${FOOTPLATE_CUDART})

  set(FOOTPLATE_MPI "${FOOTPLATE_ENV}" CACHE PATH "Open MPI's prefix (include/, lib/, bin/mpirun)")
  if(NOT EXISTS "${FOOTPLATE_MPI}/include/mpi.h")
    set(tried "${FOOTPLATE_MPI}")
    unset(FOOTPLATE_MPI CACHE)
    message(FATAL_ERROR "no MPI in '${tried}': run scripts/deps, or pass -DFOOTPLATE_MPI=PREFIX")
  endif()
  add_library(footplate_mpi INTERFACE)
  target_include_directories(footplate_mpi SYSTEM INTERFACE ${FOOTPLATE_MPI}/include)
  target_link_libraries(footplate_mpi INTERFACE ${FOOTPLATE_MPI}/lib/libmpi.so)
  target_link_options(footplate_mpi INTERFACE "LINKER:-rpath-link,${FOOTPLATE_MPI}/lib" "LINKER:--disable-new-dtags")
  file(CREATE_LINK ${FOOTPLATE_MPI} ${PROJECT_BINARY_DIR}/lib/footplate/mpi SYMBOLIC)
endif()
