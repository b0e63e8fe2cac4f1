#include "runtime/train/async_evaluation.h"

#include <ATen/core/grad_mode.h>
#include <pthread.h>

#include <chrono>

#include "runtime/base/give_way.h"
#include "runtime/device/kept_generators.h"

namespace footplate {
namespace {

/// How often a wait looks whether it is to be given up.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

AsyncEvaluation::~AsyncEvaluation() {
  give_up();
}

void AsyncEvaluation::start(std::int64_t step, const HostedTask& training, const Communicator& communicator,
                            const EvalPlan& plan) {
  under_way_ = true;
  if (progress_ != nullptr) progress_->evaluates(step);
  step_ = step;
  plan_ = plan;
  stop_ = false;
  {
    const MutexLock lock(mutex_);
    share_.reset();
  }
  try {
    copy(training);
    thread_ = std::thread([this, &communicator] { work(communicator); });
  } catch (const std::exception& error) {
    deliver(EvalShare::failed(training, communicator, plan, error.what()));
  }
}

void AsyncEvaluation::copy(const HostedTask& training) {
  if (!task_) {
    const KeptGenerators kept(training.device().where());  // whoever makes a task may seed them
    auto made = make_task_();
    if (!made) throw std::runtime_error(made.error().message);
    // It may have read its data long after the start.
    if ((*made)->corpus().hash != training.corpus().hash || (*made)->held_out() != training.held_out())
      throw std::runtime_error("the data have changed on the disk since the run began: they are " +
                               (*made)->corpus().text() + " now, and training has " +
                               training.corpus().text() + "; eval.async = false evaluates on those");
    task_ = *std::move(made);
  }
  const at::NoGradGuard no_grad;
  if (training.told()) task_->changed(*training.told(), step_);
  for (std::size_t i = 0; i < training.parameters().size(); ++i)
    task_->parameters()[i].tensor.copy_(training.parameters()[i].tensor);
  for (std::size_t i = 0; i < training.state().size(); ++i) {
    at::Tensor copy = task_->state()[i].tensor;
    copy.copy_(training.state()[i].tensor);
  }
}

void AsyncEvaluation::work(const Communicator& communicator) {
  pthread_setname_np(pthread_self(), "evaluation");
  give_way_to_training();
  try {
    task_->device().enter_thread();
    deliver(evaluate_share(*task_, communicator, plan_, [this] {
      return stop_.load() || (progress_ != nullptr && progress_->is_cancelled(step_));
    }));
  } catch (const std::exception& error) {  // its device has failed: training finds that itself
    deliver(EvalShare::failed(*task_, communicator, plan_, error.what()));
  }
}

void AsyncEvaluation::deliver(EvalShare share) {
  {
    const MutexLock lock(mutex_);
    share_ = std::move(share);
  }
  finished_.notify_all();
}

std::vector<Parameter> AsyncEvaluation::parameters() const {
  return task_ ? task_->parameters() : std::vector<Parameter>();
}

bool AsyncEvaluation::ready() const {
  if (!under_way_) return false;
  const MutexLock lock(mutex_);
  return share_.has_value();
}

EvalShare AsyncEvaluation::wait(const std::function<bool()>& abandon) {
  MutexLock lock(mutex_);
  while (!finished_.wait_for(lock, kLook, [this]() REQUIRES(mutex_) { return share_.has_value(); }))
    if (abandon()) stop_ = true;  // the share then says so
  return *share_;
}

Result<EvalResult> AsyncEvaluation::finish(Communicator& communicator, const HostedTask& task,
                                           const EvalPorts& ports) {
  const EvalShare share = wait(ports.abandon);
  end();
  return gather_shares(communicator, task, plan_, share, ports);
}

void AsyncEvaluation::give_up() {
  stop_ = true;
  end();
}

void AsyncEvaluation::end() {
  if (thread_.joinable()) thread_.join();
  under_way_ = false;
  if (progress_ != nullptr) progress_->evaluates(std::nullopt);
}

}  // namespace footplate
