#include "runtime/optim/state_entry.h"

#include <utility>

namespace footplate {

StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device) {
  return {std::move(name),           DataType::float32, tensor.sizes().vec(), Placement::replicated,
          tensor.mutable_data_ptr(), tensor.nbytes(),   device.state_memory()};
}

}  // namespace footplate
