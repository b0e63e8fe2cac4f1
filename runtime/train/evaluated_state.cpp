#include "runtime/train/evaluated_state.h"

#include "runtime/optim/state_entry.h"

namespace footplate {

EvaluatedState::EvaluatedState(const Training& training, const std::vector<Parameter>& parameters)
    : progress(training.progress()),
      settings(training.options.settings),
      moment(training.rank() == 0 ? training.options.saver->moment() : RunMoment()) {
  if (training.rank() != 0) return;
  for (const Parameter& parameter : parameters)
    state_.add(state_entry("model/" + parameter.name, parameter.tensor, training.device));
  for (const StateEntry& entry : training.state.entries()) {
    if (state_.find(entry.name) != nullptr) continue;
    std::vector<std::byte> room;
    const auto bytes = entry.on_host(room);
    copies_.emplace_back(bytes.begin(), bytes.end());  // its memory stays where it is
    StateEntry copy = entry;
    copy.data = copies_.back().data();
    copy.memory = nullptr;
    state_.add(std::move(copy));
  }
}

}  // namespace footplate
