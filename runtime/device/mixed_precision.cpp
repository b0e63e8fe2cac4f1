#include "runtime/device/mixed_precision.h"

#include <ATen/autocast_mode.h>

namespace footplate {

namespace autocast = at::autocast;

MixedPrecision::MixedPrecision(Precision precision, at::Device where)
    : type_(where.type()),
      was_enabled_(autocast::is_autocast_enabled(type_)),
      was_(autocast::get_autocast_dtype(type_)) {
  autocast::increment_nesting();
  autocast::set_autocast_dtype(type_, at::kBFloat16);
  autocast::set_autocast_enabled(type_, precision == Precision::bf16);
}

Precision MixedPrecision::now(at::Device where) {
  return autocast::is_autocast_enabled(where.type()) ? Precision::bf16 : Precision::fp32;
}

MixedPrecision::~MixedPrecision() {
  // Copies of parameters that the optimizer is about to change.
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_autocast_dtype(type_, was_);
  autocast::set_autocast_enabled(type_, was_enabled_);
}

}  // namespace footplate
