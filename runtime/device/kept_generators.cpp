#include "runtime/device/kept_generators.h"

#include <ATen/Context.h>

#include <exception>
#include <mutex>
#include <utility>

namespace footplate {
namespace {

void begin_with(at::Generator& generator, std::uint64_t seed) {
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

void seed_generator(at::Device where, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(where);
  begin_with(generator, seed);
}

void KeptGenerators::seed(std::uint64_t seed) {
  for (Kept& kept : kept_) begin_with(kept.generator, seed);
}

KeptGenerators::KeptGenerators(at::Device device) {
  keep(at::globalContext().defaultGenerator(at::kCPU));
  if (!device.is_cpu()) keep(at::globalContext().defaultGenerator(device));
}

void KeptGenerators::keep(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  kept_.push_back({generator, generator.get_state()});
}

KeptGenerators::~KeptGenerators() {
  for (Kept& kept : kept_) {
    try {
      const std::lock_guard lock(kept.generator.mutex());
      kept.generator.set_state(kept.state);
    } catch (const std::exception&) {
      // The device has failed: what computes on it next says so.
    }
  }
}

}  // namespace footplate
