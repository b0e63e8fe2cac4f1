#include "runtime/train/async_evaluation.h"

#include <ATen/core/grad_mode.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>


namespace footplate {
namespace {

/// Where training and evaluation want the same core, training gets about nine tenths of it.
constexpr int kNice = 10;

/// How often a wait looks whether it is to be given up.
constexpr std::chrono::milliseconds kLook{50};

void step_back() {
  pthread_setname_np(pthread_self(), "evaluation");
  // Linux: of this thread alone. Where it isn't allowed the evaluation runs as training does.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice));
}

}  // namespace

AsyncEvaluation::~AsyncEvaluation() {
  give_up();
}

void AsyncEvaluation::start(std::int64_t step, const std::vector<Parameter>& parameters,
                            const Communicator& communicator, const EvalPlan& plan) {
  under_way_ = true;
  if (progress_ != nullptr) progress_->evaluates(step);
  step_ = step;
  plan_ = plan;
  stop_ = done_ = false;
  try {
    copy(parameters);
    thread_ = std::thread([this, &communicator] { work(communicator); });
  } catch (const std::exception& error) {
    share_ = EvalShare::failed(error.what());
    done_ = true;
  }
}

void AsyncEvaluation::copy(const std::vector<Parameter>& parameters) {
  if (!task_) {
    auto made = make_task_();
    if (!made) throw std::runtime_error(made.error().message);
    task_ = *std::move(made);
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    task_->parameters()[i].tensor.copy_(parameters[i].tensor);
}

void AsyncEvaluation::work(const Communicator& communicator) {
  step_back();
  task_->device().enter_thread();
  share_ = evaluate_share(*task_, communicator, plan_, [this] {
    return stop_.load() || (progress_ != nullptr && progress_->is_cancelled(step_));
  });
  {
    MutexLock lock(mutex_);
    done_.store(true, std::memory_order_release);
  }
  finished_.notify_all();
}

void AsyncEvaluation::wait(const std::function<bool()>& abandon) {
  MutexLock lock(mutex_);
  while (!finished_.wait_for(lock, kLook, [this] { return done_.load(); }))
    if (abandon()) stop_ = true;  // the share then says so
}

Result<EvalResult> AsyncEvaluation::finish(Communicator& communicator, const EvalPorts& ports) {
  wait(ports.abandon);
  end();
  return gather_shares(communicator, plan_, share_, ports.meet);
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
