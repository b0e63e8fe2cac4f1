#pragma once

#include <string_view>

namespace footplate {

/// What kernels for processors are compiled for; each has what the ones before it have.
enum class Instructions { baseline, avx2, avx512 };

/// The most that this processor and its operating system have. Any thread.
Instructions instructions();

/// Whether it multiplies bfloat16 (AVX-512 or AMX), so that products in it are faster than in float32. Any
/// thread.
bool multiplies_bf16();

/// Whether it multiplies tiles of bfloat16 (AMX), which LibTorch does where it can. Any thread.
bool multiplies_bf16_tiles();

/// Whether LibTorch's MKL takes a slower path for float32 here: it looks at the vendor, not only at what the
/// processor can do, and takes AVX-512 on Intel's alone. Any thread.
bool mkl_leaves_out_instructions();

/// "baseline", "AVX2", "AVX-512".
std::string_view name_of(Instructions instructions);

}  // namespace footplate
