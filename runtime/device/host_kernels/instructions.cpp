#include "runtime/device/host_kernels/instructions.h"

namespace footplate {

Instructions instructions() {
#if defined(__x86_64__)
  // As x86-64-v4 and x86-64-v3 have them (x86-64 psABI).
  static const Instructions found = [] {
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v3 && v4) return Instructions::avx512;
    return v3 ? Instructions::avx2 : Instructions::baseline;
  }();
  return found;
#else
  return Instructions::baseline;
#endif
}

bool multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0 || multiplies_bf16_tiles();
#else
  return false;
#endif
}

bool multiplies_bf16_tiles() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("amx-bf16") != 0;
#else
  return false;
#endif
}

bool mkl_leaves_out_instructions() {
#if defined(__x86_64__)
  return instructions() == Instructions::avx512 && __builtin_cpu_is("intel") == 0;
#else
  return false;
#endif
}

std::string_view name_of(Instructions instructions) {
  switch (instructions) {
    case Instructions::avx512:
      return "AVX-512";
    case Instructions::avx2:
      return "AVX2";
    default:
      return "baseline";
  }
}

}  // namespace footplate
