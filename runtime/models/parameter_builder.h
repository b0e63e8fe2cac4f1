#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/models/parameter.h"

namespace footplate {

/// Makes parameters in one order with one generator of its own, on the host, and lists them.
class ParameterBuilder {
 public:
  ParameterBuilder(std::uint64_t seed, at::Device where, std::vector<Parameter>& list)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)), where_(where), list_(list) {}

  at::Tensor normal(const std::string& name, at::IntArrayRef shape, double deviation) {
    return add(name, at::empty(shape, at::kFloat).normal_(0.0, deviation, generator_));
  }
  at::Tensor filled(const std::string& name, std::int64_t width, double value) {
    return add(name, at::empty({width}, at::kFloat).fill_(value));
  }

 private:
  at::Tensor add(const std::string& name, at::Tensor tensor) {
    tensor = tensor.to(where_);
    tensor.requires_grad_(true);
    list_.push_back({name, tensor});
    return tensor;
  }

  at::Generator generator_;
  const at::Device where_;
  std::vector<Parameter>& list_;
};

}  // namespace footplate
