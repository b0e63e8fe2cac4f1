#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/messages/enum_words.h"
#include "protocol/result.h"

namespace footplate {

/// Which library multiplies float32 matrices on processors. Automatic: OpenBLAS where MKL leaves out
/// instructions of this processor (instructions.h) and OpenBLAS is there, else MKL. The same on every start.
enum class ProductLibrary { automatic, mkl, openblas };
template <>
struct EnumWords<ProductLibrary> {
  static constexpr std::array kAll{std::pair{ProductLibrary::automatic, std::string_view("auto")},
                                   std::pair{ProductLibrary::mkl, std::string_view("mkl")},
                                   std::pair{ProductLibrary::openblas, std::string_view("openblas")}};
};

/// Where the wheel puts it: scipy_openblas32/ beside torch/.
std::string openblas_beside_libtorch();

/// From now on that library computes LibTorch's products of float32 matrices on processors (mm, addmm, bmm,
/// linear, attention's), in the whole process. LibTorch brings MKL, which takes a slower path on processors
/// of other vendors than Intel. LibTorch calls two names of MKL's for these products. The program defines
/// both, and the dynamic linker takes a program's definition before a library's.
///
/// `path_of_openblas`: the wheel scipy-openblas32, which calls its functions scipy_…. With either library a
/// result's bits depend on the values and the shapes; with OpenBLAS they don't depend on the number of
/// threads either. Error (usage): OpenBLAS isn't there; then nothing changes. One thread at a time; products
/// may run meanwhile.
Result<void> choose_products(ProductLibrary library,
                             const std::string& path_of_openblas = openblas_beside_libtorch());

inline constexpr std::string_view kMkl = "MKL";

/// What computes them: kMkl, or "OpenBLAS 0.3.34 (SkylakeX)". Any thread.
std::string products_library();

}  // namespace footplate
