// Control over MPI, without LibTorch: `mpirun -n N control_over_mpi STEP_MS ORDERS IDLE_S`. Each step sleeps
// and then meets the others in a collective. Rank 0 gives ORDERS numbered orders at random moments; every
// rank has to have applied the same ones at the same steps. Prints, as one line of JSON, how long an
// order took until it was confirmed by all ranks, and the processor time of the control thread (in
// percent of one core) while nothing happens for IDLE_S. Exit code 0: all as it should be.

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/comm/mpi/mpi_channel.h"
#include "runtime/control/control.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Probe final : public Steerable {
 public:
  Probe(MpiSession& session, double step_ms, const std::string& doorbells)
      : session_(session), step_ms_(step_ms), channel_(make_mpi_channel(session, doorbells)) {
    ControlOptions options;
    options.schema = runtime_schema();
    options.settings = Settings::defaults(options.schema);
    options.settings.set("train.steps", std::int64_t{1000000000}, "test");
    options.channel = channel_.get();
    options.progress = &progress_;
    options.run.name = "probe";
    if (session.rank() == 0) options.observer = [this](const Observed& observed) { heard(observed); };
    control_ = std::make_unique<Control>(options);
    control_->set_steerable(*this);
  }

  int run(int orders, int idle_s) {
    control_->start();
    std::thread giver;
    if (session_.rank() == 0) giver = std::thread([this, orders, idle_s] { give(orders, idle_s); });
    for (std::int64_t step = 0; control_->gate().enter(step) == StepGate::Verdict::train; ++step) {
      progress_.enter(Phase::forward);
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(step_ms_));
      int one = 1;
      MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, session_.data());
    }
    if (giver.joinable()) giver.join();
    control_->finish(RunResult());
    const int code = compare(orders);
    if (session_.rank() == 0) fmt::print("{}", to_line(result_));
    control_.reset();
    channel_.reset();
    return code;
  }

  Result<void> prepare(const Order&, const Settings&) override { return {}; }
  Result<CallResult> call(const Call&, std::int64_t) override { return CallResult(); }
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    applied_.push_back(now.integer("eval.batches"));
    applied_.push_back(step);
    return {};
  }

 private:
  void heard(const Observed& observed) {
    const auto* event = std::get_if<EventData>(&observed);
    const auto* report = event != nullptr ? std::get_if<OrderReport>(event) : nullptr;
    if (report == nullptr || (report->state != OrderState::applied && report->state != OrderState::refused))
      return;
    std::lock_guard lock(mutex_);
    last_ = report->ref;
    reported_.notify_all();
  }

  void send(const std::string& ref, const Json& order) {
    control_->take(*console_message_from_json({{"type", "order"}, {"ref", ref}, {"order", order}}));
  }

  /// Rank 0: one order after the other, then quiet, then the stop.
  void give(int orders, int idle_s) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> pause(0, 2 * step_ms_ + 1);
    std::vector<double> took;
    for (int i = 1; i <= orders; ++i) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause(random)));
      const auto start = Clock::now();
      send(std::to_string(i), {{"changes", {{{"name", "eval.batches"}, {"value", i}}}}});
      std::unique_lock lock(mutex_);
      reported_.wait_for(lock, std::chrono::seconds(10), [&] { return last_ == std::to_string(i); });
      took.push_back(milliseconds_since(start));
    }
    std::sort(took.begin(), took.end());
    if (!took.empty())
      result_ = {
          {"orders", orders}, {"median_ms", took[took.size() / 2]}, {"p99_ms", took[took.size() * 99 / 100]}};
    measure_idle(idle_s);
    result_["held_ms"] = static_cast<double>(control_->held().total.count()) / 1e6;
    send("stop", {{"calls", {{{"action", "run.stop"}}}}});
  }

  /// In a pause: the training threads sleep, so all of the process's time is control's.
  void measure_idle(int idle_s) {
    if (idle_s == 0) return;
    send("pause", {{"calls", {{{"action", "run.pause"}}}}});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const double before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(std::chrono::seconds(idle_s));
    result_["idle_cpu_percent"] = 100 * (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / idle_s;
  }

  /// Collective. 0 where all ranks applied what rank 0 gave, each once and in one order.
  int compare(int orders) {
    std::vector<std::int64_t> theirs = applied_;
    theirs.resize(2 * static_cast<std::size_t>(orders));
    int same = applied_.size() == theirs.size() ? 1 : 0;
    for (int i = 0; i < orders && same; ++i)
      same = applied_[2 * static_cast<std::size_t>(i)] == i + 1 ? 1 : 0;
    MPI_Bcast(theirs.data(), 2 * orders, MPI_INT64_T, 0, session_.data());
    if (theirs != applied_) same = 0;
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, session_.data());
    if (!same) fmt::print("rank {}: the ranks differ, or an order was missed\n", session_.rank());
    return same ? 0 : 1;
  }

  MpiSession& session_;
  double step_ms_;
  std::unique_ptr<MessageChannel> channel_;
  Progress progress_;
  std::unique_ptr<Control> control_;
  std::vector<std::int64_t> applied_;  ///< order, step, order, step, …
  std::mutex mutex_;
  std::condition_variable reported_;
  std::string last_;
  Json result_ = Json::object();
};

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: control_over_mpi STEP_MS ORDERS IDLE_S\n");
    return 2;
  }
  auto session = footplate::MpiSession::start();
  if (!session) {
    fmt::print(stderr, "{}\n", session.error().message);
    return 1;
  }
  const char* doorbells = std::getenv("FOOTPLATE_DOORBELL_DIR");
  int code = 0;
  {
    footplate::Probe probe(**session, std::atof(argv[1]), doorbells ? doorbells : "");
    code = probe.run(std::atoi(argv[2]), std::atoi(argv[3]));
  }
  (*session)->finish();
  return code;
}
