#include "runtime/device/host_kernels/gelu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <bit>
#include <cstdint>

namespace footplate {
namespace {

constexpr float kSlope = 0.7978845608F;  ///< sqrt(2 / pi)
constexpr float kCubic = 0.044715F;
constexpr float kFar = 60.0F;  ///< beyond it e^x isn't wanted
/// Elements that a thread takes at least.
constexpr std::int64_t kGrain = 1 << 14;

/// e^x for -60 <= x <= 60, beyond which it stays: there GELU is x or 0 to all digits, and further out x times
/// e^-x has no normal number, which a processor takes a hundred times as long for. Relative error below 2e-7.
/// Cephes' polynomial (Moshier), without a branch, so that it is computed for many x at a time. NaN stays
/// NaN.
[[gnu::always_inline]] inline float exp_of(float x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRounding = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to an integer
  x = x < -kFar ? -kFar : x;
  x = x > kFar ? kFar : x;
  const float shifted = x * kLog2E + kRounding;
  const float n = shifted - kRounding;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = p * (r * r) + r + 1.0F;
  const std::uint32_t power = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounding);
  return y * std::bit_cast<float>((power + 127U) << 23U);
}

/// The sigmoid of twice tanh's argument; 0 where it is below e^-60.
[[gnu::always_inline]] inline float gate_of(float x) {
  const float argument = kSlope * (x + kCubic * x * x * x);
  const float gate = 1.0F / (1.0F + exp_of(-2.0F * argument));
  return argument < -kFar / 2 ? 0.0F : gate;
}

[[gnu::always_inline]] inline float forward_of(float x) {
  return x * gate_of(x);
}

[[gnu::always_inline]] inline float backward_of(float x, float gradient) {
  constexpr float kFlat = 30.0F;  // the gate is 0 or 1 long before, and x * x may be infinite behind
  const float gate = gate_of(x);
  float near = x < -kFlat ? -kFlat : x;
  near = near > kFlat ? kFlat : near;
  const float slope = 2.0F * kSlope * (1.0F + 3.0F * kCubic * near * near);
  return gradient * (gate + near * gate * (1.0F - gate) * slope);
}

/// A bfloat16 by its bits, converted without a branch.
struct Bf16 {
  std::uint16_t bits;
};
[[gnu::always_inline]] inline float load(float x) {
  return x;
}
[[gnu::always_inline]] inline float load(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16U);
}
[[gnu::always_inline]] inline void store(float& to, float x) {
  to = x;
}
/// To the nearest, ties to even.
[[gnu::always_inline]] inline void store(Bf16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  constexpr std::uint32_t kNan = 0x7FC0U;
  to.bits = static_cast<std::uint16_t>(x == x ? rounded : kNan);
}

template <class T>
[[gnu::always_inline]] inline void forward_all(const T* __restrict__ x, T* __restrict__ y,
                                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(y[i], forward_of(load(x[i])));
}
template <class T>
[[gnu::always_inline]] inline void backward_all(const T* __restrict__ x, const T* __restrict__ gradient,
                                                T* __restrict__ result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(result[i], backward_of(load(x[i]), load(gradient[i])));
}

/// Both for one set of instructions.
template <class T>
struct Kernels {
  void (*forward)(const T* x, T* y, std::int64_t count);
  void (*backward)(const T* x, const T* gradient, T* result, std::int64_t count);
};

template <class T>
struct Baseline {
  static void forward(const T* x, T* y, std::int64_t count) { forward_all(x, y, count); }
  static void backward(const T* x, const T* gradient, T* result, std::int64_t count) {
    backward_all(x, gradient, result, count);
  }
};

#if defined(__x86_64__)
template <class T>
struct Avx2 {
  [[gnu::target("arch=x86-64-v3")]] static void forward(const T* x, T* y, std::int64_t count) {
    forward_all(x, y, count);
  }
  [[gnu::target("arch=x86-64-v3")]] static void backward(const T* x, const T* gradient, T* result,
                                                         std::int64_t count) {
    backward_all(x, gradient, result, count);
  }
};
template <class T>
struct Avx512 {
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void forward(const T* x, T* y,
                                                                                std::int64_t count) {
    forward_all(x, y, count);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void backward(const T* x,
                                                                                 const T* gradient, T* result,
                                                                                 std::int64_t count) {
    backward_all(x, gradient, result, count);
  }
};
#endif

template <class T>
Kernels<T> kernels(Instructions use) {
#if defined(__x86_64__)
  if (use == Instructions::avx512) return {Avx512<T>::forward, Avx512<T>::backward};
  if (use == Instructions::avx2) return {Avx2<T>::forward, Avx2<T>::backward};
#endif
  static_cast<void>(use);
  return {Baseline<T>::forward, Baseline<T>::backward};
}

template <class T>
const T* read(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}
template <class T>
T* write(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

template <class T>
void forward(const at::Tensor& x, const at::Tensor& y, Instructions use) {
  at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels<T>(use).forward(read<T>(x) + begin, write<T>(y) + begin, end - begin);
  });
}
template <class T>
void backward(const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& result, Instructions use) {
  at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels<T>(use).backward(read<T>(x) + begin, read<T>(gradient) + begin, write<T>(result) + begin,
                             end - begin);
  });
}

struct GeluTanh : torch::autograd::Function<GeluTanh> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& given,
                            std::int64_t use) {
    const at::Tensor x = given.contiguous();
    context->save_for_backward({x});
    context->saved_data["use"] = use;
    at::Tensor y = at::empty_like(x);
    if (x.scalar_type() == at::kFloat)
      footplate::forward<float>(x, y, static_cast<Instructions>(use));
    else
      footplate::forward<Bf16>(x, y, static_cast<Instructions>(use));
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables().front();
    const at::Tensor gradient = gradients.front().to(x.scalar_type()).contiguous();
    const auto use = static_cast<Instructions>(context->saved_data.at("use").toInt());
    at::Tensor result = at::empty_like(x);
    if (x.scalar_type() == at::kFloat)
      footplate::backward<float>(x, gradient, result, use);
    else
      footplate::backward<Bf16>(x, gradient, result, use);
    return {result, {}};
  }
};

}  // namespace

at::Tensor gelu_tanh(const at::Tensor& x, Instructions use) {
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  if (!x.is_cpu() || !known) return at::gelu(x, "tanh");
  return GeluTanh::apply(x, static_cast<std::int64_t>(use));
}

}  // namespace footplate
