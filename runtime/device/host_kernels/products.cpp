#include "runtime/device/host_kernels/products.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "runtime/device/host_kernels/instructions.h"

#define FOOTPLATE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// C = alpha op(A) op(B) + beta C by columns, as BLAS has it.
using Sgemm = void(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                   const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                   const float* beta, float* c, const int* ldc);
using SgemmBatch = void(int layout, const int* transpose_a, const int* transpose_b, const int* m,
                        const int* n, const int* k, const float* alpha, const float** a, const int* lda,
                        const float** b, const int* ldb, const float* beta, float** c, const int* ldc,
                        int groups, const int* group_sizes);

constexpr int kByColumns = 102, kNoTranspose = 111;  // of CBLAS

/// A product of one pair of matrices.
struct Product {
  bool transpose_a, transpose_b;
  int m, n, k;
  float alpha;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float beta;
  float* c;
  int ldc;

  void by(Sgemm* sgemm) const {
    const char of_a = transpose_a ? 'T' : 'N', of_b = transpose_b ? 'T' : 'N';
    sgemm(&of_a, &of_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  }
  /// The same for `count` rows of C from `first`.
  Product rows(int first, int count) const {
    Product part = *this;
    part.a += transpose_a ? std::int64_t{first} * lda : first;
    part.c += first;
    part.m = count;
    return part;
  }
  /// The same for `count` columns of C from `first`.
  Product columns(int first, int count) const {
    Product part = *this;
    part.b += transpose_b ? first : std::int64_t{first} * ldb;
    part.c += std::int64_t{first} * ldc;
    part.n = count;
    return part;
  }
};

/// Products below so many multiplications are computed in one piece: they take some 100 us.
constexpr std::int64_t kWorthCutting = std::int64_t{1} << 22;
/// Rows or columns of C that a piece has: enough that what OpenBLAS packs for each piece doesn't count.
constexpr int kOfPiece = 256;

/// In pieces that depend on the shape alone, so that the bits don't depend on the number of threads: a
/// library that cuts for its threads adds up in another order for another number.
void in_pieces(const Product& whole, Sgemm* sgemm) {
  const bool by_rows = whole.m > whole.n;
  const int length = by_rows ? whole.m : whole.n;
  if (length < 2 * kOfPiece || std::int64_t{whole.m} * whole.n * whole.k < kWorthCutting)
    return whole.by(sgemm);
  const int pieces = length / kOfPiece;  // the last one takes the rest
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto piece = static_cast<int>(begin); piece < end; ++piece) {
      const int first = piece * kOfPiece, count = piece + 1 < pieces ? kOfPiece : length - first;
      (by_rows ? whole.rows(first, count) : whole.columns(first, count)).by(sgemm);
    }
  });
}

/// MKL's, which comes behind the program's where names are looked up.
template <class Function>
Function* of_mkl(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) throw std::runtime_error(fmt::format("LibTorch has no {}", name));
  return reinterpret_cast<Function*>(found);
}

std::atomic<Sgemm*> sgemm_of_openblas{nullptr};  ///< null: MKL computes
std::atomic<const char*> chosen_name{kMkl.data()};

/// Opened once. Its own threads stay unused; the rank's main() sees to it that it starts none.
class OpenBlas {
 public:
  static Result<const OpenBlas*> get(const fs::path& path) {
    static std::map<fs::path, OpenBlas> opened;
    if (const auto known = opened.find(path); known != opened.end()) return &known->second;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return fail(
          ErrorKind::usage,
          fmt::format("run.blas = \"openblas\": it can't be opened ({}); scripts/deps installs it, and "
                      "elsewhere pip install scipy-openblas32 beside torch; run.blas = \"mkl\" does without",
                      ::dlerror()));
    const OpenBlas found(library);
    if (found.sgemm == nullptr)
      return fail(ErrorKind::usage, fmt::format("run.blas = \"openblas\": {} has no scipy_sgemm_; "
                                                "requirements.txt names the version that has",
                                                path.string()));
    return &opened.emplace(path, found).first->second;
  }

  Sgemm* sgemm;
  std::string name = "OpenBLAS";  ///< with its version and the processor that it takes this one for

 private:
  explicit OpenBlas(void* library) : sgemm(reinterpret_cast<Sgemm*>(::dlsym(library, "scipy_sgemm_"))) {
    if (auto* threads = reinterpret_cast<void (*)(int)>(::dlsym(library, "scipy_openblas_set_num_threads")))
      threads(1);
    const auto text = [library](const char* symbol) -> std::string {
      auto* function = reinterpret_cast<const char* (*)()>(::dlsym(library, symbol));
      return function == nullptr ? "" : function();
    };
    const std::string config = text("scipy_openblas_get_config");  // "OpenBLAS 0.3.34  DYNAMIC_ARCH …"
    name = fmt::format("{} ({})", config.substr(0, config.find(' ', config.find(' ') + 1)),
                       text("scipy_openblas_get_corename"));
  }
};

}  // namespace

std::string openblas_beside_libtorch() {
  // MKL is a part of …/torch/lib/libtorch_cpu.so.
  Dl_info info{};
  ::dladdr(::dlsym(RTLD_NEXT, "sgemm_"), &info);
  const fs::path torch = fs::weakly_canonical(info.dli_fname == nullptr ? "" : info.dli_fname);
  return torch.parent_path().parent_path().parent_path() / "scipy_openblas32/lib/libscipy_openblas.so";
}

Result<void> choose_products(ProductLibrary library, const std::string& path_of_openblas) {
  if (library == ProductLibrary::automatic) {
    if (mkl_leaves_out_instructions() && choose_products(ProductLibrary::openblas, path_of_openblas))
      return {};
    library = ProductLibrary::mkl;
  }
  if (library == ProductLibrary::mkl) {
    sgemm_of_openblas = nullptr;
    chosen_name = kMkl.data();
    return {};
  }
  const auto openblas = OpenBlas::get(path_of_openblas);
  if (!openblas) return tl::unexpected(openblas.error());
  chosen_name = (*openblas)->name.c_str();
  sgemm_of_openblas = (*openblas)->sgemm;
  return {};
}

std::string products_library() {
  return chosen_name.load();
}

}  // namespace footplate

using footplate::Product;

FOOTPLATE_EXPORTED void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                               const int* k, const float* alpha, const float* a, const int* lda,
                               const float* b, const int* ldb, const float* beta, float* c, const int* ldc) {
  using namespace footplate;
  if (Sgemm* const openblas = sgemm_of_openblas.load(std::memory_order_acquire)) {
    const auto transposed = [](char letter) { return letter != 'N' && letter != 'n'; };
    return in_pieces({transposed(*transpose_a), transposed(*transpose_b), *m, *n, *k, *alpha, a, *lda, b,
                      *ldb, *beta, c, *ldc},
                     openblas);
  }
  static Sgemm* const mkl = of_mkl<Sgemm>("sgemm_");
  mkl(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

FOOTPLATE_EXPORTED void cblas_sgemm_batch(int layout, const int* transpose_a, const int* transpose_b,
                                          const int* m, const int* n, const int* k, const float* alpha,
                                          const float** a, const int* lda, const float** b, const int* ldb,
                                          const float* beta, float** c, const int* ldc, int groups,
                                          const int* group_sizes) {
  using namespace footplate;
  Sgemm* const openblas = sgemm_of_openblas.load(std::memory_order_acquire);
  if (openblas == nullptr || layout != kByColumns) {  // LibTorch's are by columns
    static SgemmBatch* const mkl = of_mkl<SgemmBatch>("cblas_sgemm_batch");
    return mkl(layout, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, groups,
               group_sizes);
  }
  std::int64_t first = 0;
  for (int group = 0; group < groups; ++group) {
    at::parallel_for(first, first + group_sizes[group], 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        Product{transpose_a[group] != kNoTranspose,
                transpose_b[group] != kNoTranspose,
                m[group],
                n[group],
                k[group],
                alpha[group],
                a[i],
                lda[group],
                b[i],
                ldb[group],
                beta[group],
                c[i],
                ldc[group]}
            .by(openblas);
    });
    first += group_sizes[group];
  }
}
