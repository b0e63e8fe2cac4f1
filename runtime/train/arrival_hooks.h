#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/models/parameter.h"

namespace footplate {

/// Tells, inside backward and in the thread that computes it, that a parameter's gradient is accumulated. The
/// thread that called backward waits meanwhile.
class ArrivalHooks {
 public:
  /// The parameter, and its number in reversed order.
  using Arrived = std::function<void(const at::Tensor& parameter, std::size_t number)>;

  /// `parameters` outlive it.
  ArrivalHooks(const std::vector<Parameter>& parameters, Arrived arrived);
  ~ArrivalHooks();
  ArrivalHooks(const ArrivalHooks&) = delete;
  ArrivalHooks& operator=(const ArrivalHooks&) = delete;

 private:
  const std::vector<Parameter>& parameters_;
};

}  // namespace footplate
