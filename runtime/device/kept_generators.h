#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace footplate {

/// The generator of `where` begins with `seed`: no work for a device. Any thread that has entered it, but not
/// while the work of a device is captured.
void seed_generator(at::Device where, std::uint64_t seed);

/// Keeps LibTorch's random number generators, those of the processors and of one device: what is seeded and
/// drawn while it lives changes no number that is drawn afterwards. Any thread that has entered the device.
class KeptGenerators {
 public:
  explicit KeptGenerators(at::Device device);
  ~KeptGenerators();
  KeptGenerators(const KeptGenerators&) = delete;
  KeptGenerators& operator=(const KeptGenerators&) = delete;

  /// They begin with `seed`.
  void seed(std::uint64_t seed);

 private:
  struct Kept {
    at::Generator generator;
    at::Tensor state;
  };
  void keep(at::Generator generator);

  std::vector<Kept> kept_;
};

}  // namespace footplate
