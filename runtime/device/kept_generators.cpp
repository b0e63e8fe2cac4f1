#include "runtime/device/kept_generators.h"

#include <ATen/Context.h>

#include <exception>
#include <mutex>
#include <utility>

namespace footplate {

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
