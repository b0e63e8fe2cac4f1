#include "runtime/train/faulty_training.h"

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>

#include "runtime/base/fault.h"
#include "runtime/comm/faulty_communicator.h"
#include "runtime/device/faulty_device.h"
#include "runtime/tasks/faulty_task.h"
#include "runtime/train/training.h"

namespace footplate {
namespace {

class DyingSaver final : public Saver {
 public:
  explicit DyingSaver(Saver& inner) : inner_(inner) {}
  Result<Saved> save(const Snapshot& snapshot) override {
    std::raise(SIGKILL);
    return inner_.save(snapshot);
  }
  Result<Json> load(const std::string& checkpoint, const StateTable& into) override {
    return inner_.load(checkpoint, into);
  }
  void moved_to(int rank, int world_size) override { inner_.moved_to(rank, world_size); }

 private:
  Saver& inner_;
};

}  // namespace

struct FaultyTraining::Parts {
  std::int64_t step = 0;
  std::optional<FaultyCommunicator> communicator, gradients;
  std::optional<DyingSaver> saver;
  std::optional<FaultyDevice> device;
  FaultyTask* task = nullptr;  ///< the one that is trained; others evaluate
};

FaultyTraining::FaultyTraining(int rank) : rank_(rank) {
  if (std::getenv("FOOTPLATE_FAULT") != nullptr) parts_ = std::make_unique<Parts>();
}

FaultyTraining::~FaultyTraining() = default;

TrainerOptions FaultyTraining::around(const TrainerOptions& options) {
  if (!parts_) return options;
  Parts& parts = *parts_;
  parts.communicator.emplace(options.communicator, options.progress, rank_);
  if (options.gradients != nullptr) parts.gradients.emplace(*options.gradients, options.progress, rank_);
  if (options.saver != nullptr && fault("save_die", rank_)) parts.saver.emplace(*options.saver);
  if (const auto error = fault("device_error", rank_))
    parts.device.emplace(device_of(options), "stand-in-" + std::to_string(rank_), [&parts, error] {
      const bool failed = parts.step >= error->get("step").value_or(0);
      return failed ? std::optional<std::string>("an illegal memory access was encountered") : std::nullopt;
    });
  return {.settings = options.settings,
          .communicator = *parts.communicator,
          .progress = options.progress,
          .local_ranks = options.local_ranks,
          .saver = parts.saver ? &*parts.saver : options.saver,
          .sink = options.sink,
          .log = options.log,
          .device = parts.device ? &*parts.device : options.device,
          .gradients = parts.gradients ? &*parts.gradients : nullptr,
          .before_step =
              [&parts, before_step = options.before_step](std::int64_t step) {
                parts.step = step;
                parts.communicator->begin_step(step);
                if (parts.gradients) parts.gradients->begin_step(step);
                parts.task->begin_step();
                return before_step ? before_step(step) : Result<void>();
              },
          .wrap_task = [&parts, rank = rank_](std::unique_ptr<v1::Task> task) -> std::unique_ptr<v1::Task> {
            auto faulty = std::make_unique<FaultyTask>(std::move(task), parts.step, rank);
            if (parts.task == nullptr) parts.task = faulty.get();
            return faulty;
          },
          .branch = options.branch,
          .folder = options.folder,
          .joins = options.joins,
          .ledger = options.ledger};
}

}  // namespace footplate
