# Libraries from Debian, and LibTorch and Open MPI from the environment that scripts/deps made.
# docs/dependencies.md has each one's reason.
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_library(FOOTPLATE_XXHASH xxhash REQUIRED)

find_path(FOOTPLATE_LUA_INCLUDE lua.hpp PATH_SUFFIXES lua5.4 REQUIRED)
find_library(FOOTPLATE_LUA_LIBRARY lua5.4-c++ REQUIRED)
add_library(footplate_lua_library INTERFACE)
target_include_directories(footplate_lua_library SYSTEM INTERFACE ${FOOTPLATE_LUA_INCLUDE})
target_link_libraries(footplate_lua_library INTERFACE ${FOOTPLATE_LUA_LIBRARY})

if(FOOTPLATE_LIBTORCH)
  file(GLOB FOOTPLATE_SITE_PACKAGES "${FOOTPLATE_ENV}/lib/python3*/site-packages")
  set(FOOTPLATE_TORCH "${FOOTPLATE_SITE_PACKAGES}/torch" CACHE PATH "LibTorch's folder (include/ and lib/)")
  if(NOT EXISTS "${FOOTPLATE_TORCH}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "no LibTorch in ${FOOTPLATE_TORCH}: run scripts/deps, or pass -DFOOTPLATE_TORCH=DIR")
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
    message(FATAL_ERROR "no MPI in ${FOOTPLATE_MPI}: run scripts/deps, or pass -DFOOTPLATE_MPI=PREFIX")
  endif()
  add_library(footplate_mpi INTERFACE)
  target_include_directories(footplate_mpi SYSTEM INTERFACE ${FOOTPLATE_MPI}/include)
  target_link_libraries(footplate_mpi INTERFACE ${FOOTPLATE_MPI}/lib/libmpi.so)
  target_link_options(footplate_mpi INTERFACE "LINKER:-rpath-link,${FOOTPLATE_MPI}/lib" "LINKER:--disable-new-dtags")
  file(CREATE_LINK ${FOOTPLATE_MPI} ${PROJECT_BINARY_DIR}/lib/footplate/mpi SYMBOLIC)
endif()
