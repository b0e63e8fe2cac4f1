#include "runtime/comm/sim/sim_scheduler.h"

#include <fmt/format.h>
#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace footplate {
namespace {

/// What one turn takes at most: threads that never wait don't stop the clock, and don't race in step.
constexpr std::uint64_t kTurn_ns = 2000;
/// Lines of the trace that a failure shows.
constexpr std::size_t kShown = 60;

/// splitmix64's step.
std::uint64_t digest_with(std::uint64_t digest, std::uint64_t value) {
  digest = (digest ^ value) * 0xbf58476d1ce4e5b9U;
  return digest ^ (digest >> 31U);
}

}  // namespace

struct Scheduler::Task {
  enum class State { ready, waiting, ended };

  Task(std::size_t the_number, std::string_view the_name) : number(the_number), name(the_name) {
    ::sem_init(&turn, 0, 0);
  }
  ~Task() { ::sem_destroy(&turn); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  void give_turn() { ::sem_post(&turn); }
  void await_turn() {
    while (::sem_wait(&turn) != 0 && errno == EINTR) continue;
  }

  const std::size_t number;
  const std::string name;
  State state = State::ready;
  const void* condition = nullptr;  ///< it waits for; null: for the time alone
  time_point until{};
  bool notified = false;
  sem_t turn;
};

using State = Scheduler::Task::State;

SimScheduler::SimScheduler(std::uint64_t seed)
    : seed_(seed), random_(seed), now_(std::chrono::hours(1)), running_(add("test")) {
  if (current() != nullptr) std::abort();  // one at a time
  set_current(this);
  // One thread runs at a time: on one core the next one is reached in half the time.
  ::sched_getaffinity(0, sizeof cores_, &cores_);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(std::max(0, ::sched_getcpu())), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

SimScheduler::~SimScheduler() {
  ::sched_setaffinity(0, sizeof cores_, &cores_);
  set_current(nullptr);
  for (const auto& task : tasks_)
    if (task.get() != running_ && task->state != State::ended) stuck();
}

Scheduler::Task* SimScheduler::add(std::string_view name) {
  tasks_.push_back(std::make_unique<Task>(tasks_.size(), name));
  return tasks_.back().get();
}

void SimScheduler::run(Task* task, const std::function<void()>& body) {
  task->await_turn();
  set_current(this);
  body();
  set_current(nullptr);
  task->state = State::ended;
  notify_all(task);
  running_ = choose();
  running_->give_turn();
}

void SimScheduler::join(const Task* task) {
  while (task->state != State::ended) suspend(task, time_point::max());
}

bool SimScheduler::wait(const void* condition, std::unique_lock<std::mutex>& lock, time_point until) {
  Task& self = *running_;
  lock.unlock();
  suspend(condition, until);
  lock.lock();
  return self.notified;
}

void SimScheduler::notify_all(const void* condition) {
  for (const auto& task : tasks_) {
    if (task->state != State::waiting || task->condition != condition) continue;
    task->state = State::ready;
    task->notified = true;
  }
}

void SimScheduler::sleep_until(time_point until) {
  suspend(nullptr, until);
}

void SimScheduler::pass() {
  hand_over();
}

void SimScheduler::suspend(const void* condition, time_point until) {
  Task& self = *running_;
  self.state = State::waiting;
  self.condition = condition;
  self.until = until;
  self.notified = false;
  hand_over();
}

void SimScheduler::hand_over() {
  Task* const self = running_;
  Task* const next = choose();
  if (next == self) return;
  running_ = next;
  next->give_turn();
  self->await_turn();
}

Scheduler::Task* SimScheduler::choose() {
  now_ += std::chrono::nanoseconds(random_() % kTurn_ns);
  do {
    wake_by_time();
    ready_.clear();
    for (const auto& task : tasks_)
      if (task->state == State::ready) ready_.push_back(task.get());
  } while (ready_.empty());
  Task* const chosen = ready_[random_() % ready_.size()];
  digest_ = digest_with(digest_with(digest_, static_cast<std::uint64_t>(now_.time_since_epoch().count())),
                        chosen->number);
  ++turns_;
  return chosen;
}

/// Those whose time has come can go on; where nobody can otherwise, it comes now.
void SimScheduler::wake_by_time() {
  bool any_ready = false;
  auto first = time_point::max();
  for (const auto& task : tasks_) {
    any_ready = any_ready || task->state == State::ready;
    if (task->state == State::waiting) first = std::min(first, task->until);
  }
  if (!any_ready && first == time_point::max()) stuck();
  if (!any_ready) now_ = std::max(now_, first);
  for (const auto& task : tasks_)
    if (task->state == State::waiting && task->until <= now_) task->state = State::ready;
}

void SimScheduler::stuck() const {
  std::string text = "no thread can go on:\n";
  for (const auto& task : tasks_)
    if (task->state != State::ended) text += fmt::format("  {} {} waits\n", task->number, task->name);
  std::fputs((text + trace(kShown)).c_str(), stderr);
  std::abort();
}

void SimScheduler::note(std::string_view text) {
  for (const char letter : text) digest_ = digest_with(digest_, static_cast<unsigned char>(letter));
  lines_.push_back({turns_, now_, running_, std::string(text)});
  if (lines_.size() > kKept) lines_.pop_front();
}

std::string SimScheduler::trace(std::size_t lines) const {
  std::string text = fmt::format("seed {}, digest {:016x}\n", seed_, digest_);
  for (std::size_t i = lines_.size() - std::min(lines, lines_.size()); i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    const std::chrono::duration<double, std::micro> at = line.at.time_since_epoch() - std::chrono::hours(1);
    text += fmt::format("{:7} {:12.3f} {:3} {:<10} {}\n", line.turn, at.count(), line.task->number,
                        line.task->name, line.text);
  }
  return text;
}

}  // namespace footplate
