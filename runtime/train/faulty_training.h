#pragma once

#include <memory>

#include "runtime/train/trainer.h"

namespace footplate {

/// Puts what FOOTPLATE_FAULT asks for around the parts that a trainer is made from: FaultyTask,
/// FaultyCommunicator, FaultyDevice, and a saver that kills its process (save_die). Without FOOTPLATE_FAULT
/// the parts stay what they are.
class FaultyTraining {
 public:
  /// `rank`: at the start, which the faults name.
  explicit FaultyTraining(int rank);
  ~FaultyTraining();
  FaultyTraining(const FaultyTraining&) = delete;
  FaultyTraining& operator=(const FaultyTraining&) = delete;

  /// What to make the trainer from; it ends before this object. Once.
  TrainerOptions around(const TrainerOptions& options);

 private:
  struct Parts;
  const int rank_;
  std::unique_ptr<Parts> parts_;  ///< null: no fault
};

}  // namespace footplate
