#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/condition.h"
#include "runtime/base/thread.h"
#include "runtime/comm/sim/sim_scheduler.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/control/control.h"
#include "runtime/control/control_channel.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/as_json.h"

namespace footplate::testing {

/// As topic and data: `applied`, `console`, or an event's.
inline Told told(const Observed& observed) {
  return std::visit(Overloaded{[](const EventData& event) { return told(event); },
                               [](const OrderApplied& applied) {
                                 return Told("applied", {{"order", applied.order}, {"step", applied.step}});
                               },
                               [](const ConsoleStarted& console) {
                                 return Told("console", {{"pid", console.pid}});
                               }},
                    observed);
}

inline RunResult ended_well() {
  RunResult result;
  result.code = 0;
  return result;
}

/// What one rank's training did, written by its training thread and read once that has ended.
struct Record {
  struct Change {
    std::int64_t step;
    std::string digest;
    std::int64_t batches;  ///< eval.batches, which the tests number their orders by
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changes;
  std::vector<std::string> calls;          ///< "eval.now at 12"
  std::vector<std::int64_t> batches_used;  ///< eval.batches by step trained
  Ending ending;
  std::int64_t end_step = -1;
};

#ifdef __SANITIZE_THREAD__
inline constexpr bool kTakeTurns = false;  // what it looks for needs threads that run at the same time
#else
inline constexpr bool kTakeTurns = true;
#endif

/// Ranks as threads: a training thread that does nothing but wait for the slowest rank, as a
/// collective would, and the real Control of each, over SimWorld. As long as it lives this thread and those
/// of the ranks run under a SimScheduler with the world's seed.
class SimRun {
 public:
  struct Options {
    int ranks = 2;
    SimWorld::Options world;
    bool take_turns = kTakeTurns;  ///< not: threads run freely, in real time, as they do with a console
    ControlTimes times;
    std::vector<std::pair<std::string, Value>> settings;  ///< besides the defaults
    std::vector<Committed> ahead;                         ///< as ControlOptions
    std::chrono::microseconds step_time{0};
    std::filesystem::path console_program;
    std::filesystem::path run_directory;
    std::function<Result<void>(int rank, const Order&)> prepare;  ///< empty: always can
    std::function<Result<CallResult>(int rank, const Call&, std::int64_t step, StepGate&)> call;
  };

  explicit SimRun(Options options);
  ~SimRun();

  /// Sends a line to rank 0 as its console would.
  void send(const Json& line) { controls_[0]->take(from_console(line)); }
  void order(const std::string& ref, const Json& changes, const Json& calls = Json::array(),
             const Json& more = Json::object());

  /// The first report of `topic` that fits, waited for; null after ten seconds.
  Json wait_for(const std::string& topic, const std::function<bool(const Json&)>& fits);
  /// A report about the order with this ref and state.
  Json wait_for_order(const std::string& ref, const std::string& state);
  /// Any final one.
  Json wait_for_outcome(const std::string& ref);
  /// The first status of rank 0 that fits; null after ten seconds.
  Json wait_for_status(const std::function<bool(const Json&)>& fits);
  std::vector<Json> reports(const std::string& topic);

  /// Orders run.stop and waits for all ranks to end.
  void stop();
  /// Waits for all training threads to end by themselves.
  void join();

  Control& control(int rank) { return *controls_[static_cast<std::size_t>(rank)]; }
  const Record& record(int rank) const { return records_[static_cast<std::size_t>(rank)]; }
  SimWorld& world() { return *world_; }
  Ledger& ledger(int rank) { return *ledgers_[static_cast<std::size_t>(rank)]; }
  std::int64_t step(int rank) const { return progress_[static_cast<std::size_t>(rank)]->step(); }
  /// Waits until rank 0 is at `step` or beyond.
  void wait_for_step(std::int64_t step);

 private:
  class Trainer;
  Json wait_for_any(const std::string& ref, const std::vector<std::string>& states);
  void train(int rank);
  void keep_together(int rank, std::int64_t step);

  std::optional<SimScheduler> scheduler_;  // first: all threads end before it does
  Options options_;
  Schema schema_ = runtime_schema();
  std::unique_ptr<SimWorld> world_;
  std::vector<std::unique_ptr<MessageChannel>> channels_;
  std::vector<std::unique_ptr<Progress>> progress_;
  std::vector<std::unique_ptr<Ledger>> ledgers_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<Record> records_;
  std::vector<Thread> threads_;
  std::vector<std::atomic<std::int64_t>> at_;

  Mutex mutex_;
  Condition reported_;
  std::vector<std::pair<std::string, Json>> reports_;
  std::map<std::pair<Json, std::string>, Json> orders_;  ///< first order report by ref and state
};

}  // namespace footplate::testing
