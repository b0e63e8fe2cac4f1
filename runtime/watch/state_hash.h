#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace footplate {

/// Of one tensor, or of the bytes of it that were hashed.
struct TensorHash {
  std::string name;
  std::uint64_t hash = 0;

  friend bool operator==(const TensorHash&, const TensorHash&) = default;
};

/// What a rank says of its state: ranks that are in step say the same.
struct StateHash {
  std::int64_t step = 0;                    ///< completed
  std::uint64_t hash = 0;                   ///< of all that was hashed
  std::optional<std::int64_t> agreed = {};  ///< the step after which the same was equal on all ranks
  std::vector<TensorHash> tensors = {};  ///< the same, one by one, in the order of the table; empty: not told
};

}  // namespace footplate
