#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "footplate/task.h"

namespace footplate {

struct QuantiserShape {
  std::int64_t codebooks = 4;
  std::int64_t codes = 256;  ///< of each codebook
  std::int64_t width = 64;   ///< of a vector
};

/// How codebooks follow what they are used for.
struct CodebookPace {
  double decay = 0.99;  ///< of the running counts and sums
  double dead_below =
      0.05;  ///< of a codebook's mean count: a code that is chosen less is replaced; 0: none is
};

/// Residual vector quantisation (Zeghidour et al. 2021): the first codebook's nearest code stands for a
/// vector, the second one's for what that leaves, and so on. Codebooks aren't trained by gradients: each code
/// is the running mean of what it stood for (van den Oord et al. 2017, appendix A.1). All of it is float32,
/// also under autocast, and nothing is read back from a device.
///
/// A running count begins at zero, so that the first update moves codes to the means of what they were chosen
/// for, and the next ones split those that are chosen most until all are in use.
class RvqQuantiser {
 public:
  /// First codes are drawn from `seed`.
  RvqQuantiser(const QuantiserShape& shape, std::uint64_t seed, at::Device where);

  const QuantiserShape& shape() const { return shape_; }
  /// "codes", "counts", "sums" and "chosen": what update() writes.
  std::vector<v1::State> state() const;

  struct Quantised {
    at::Tensor values;  ///< [vectors, width]; their gradient goes to the vectors as it is (straight-through)
    at::Tensor
        commitment;  ///< how far vectors are from their codes: squared, mean of width and codebooks, summed
    at::Tensor indexes;  ///< int64 [vectors, codebooks]
  };
  /// `vectors`: [vectors, width].
  Quantised quantise(const at::Tensor& vectors) const;
  /// What the codes of these indexes add up to: [vectors, width].
  at::Tensor values_of(const at::Tensor& indexes) const;

  struct Use {
    at::Tensor counts;  ///< [codebooks, codes]: how often each was chosen
    at::Tensor sums;    ///< [codebooks, codes, width]: of what it stood for
  };
  Use use_of(const at::Tensor& vectors, const at::Tensor& indexes) const;

  /// Codebooks after a step in which they were used so, on all ranks together. A dead code becomes one half
  /// of a code that is chosen much: a function of `use` and what was before, the same on all ranks. `skip`:
  /// one float; where it is 1 everything stays as it is, to the last bit.
  void update(const Use& use, const at::Tensor& skip, const CodebookPace& pace);

  /// Over the codebooks' mean, one float each: which part of the codes was chosen at all within about
  /// 1 / (1 - decay) steps, and the perplexity of the running counts (all codes alike: `codes`).
  at::Tensor share_in_use(double decay) const;
  at::Tensor perplexity() const;

 private:
  struct Running {
    at::Tensor counts, sums;
  };
  at::Tensor nearest(const at::Tensor& vectors, std::int64_t codebook) const;
  Running split(const Running& running, double dead_below) const;

  QuantiserShape shape_;
  at::Tensor codes_;   ///< [codebooks, codes, width]
  at::Tensor counts_;  ///< [codebooks, codes]: running, divided among the halves of a code that was split
  at::Tensor sums_;    ///< [codebooks, codes, width], running
  at::Tensor chosen_;  ///< [codebooks, codes]: running, as counted
  at::Tensor apart_;   ///< [codebooks, codes, width]: the direction in which the halves of a code part
};

}  // namespace footplate
