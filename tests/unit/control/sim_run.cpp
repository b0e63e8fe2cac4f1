#include "tests/unit/control/sim_run.h"

#include <algorithm>
#include <limits>

namespace footplate::testing {
namespace {

constexpr std::chrono::seconds kPatience{10};
/// Steps that a rank may be ahead of the slowest.
constexpr std::int64_t kLead = 2;

}  // namespace

class SimRun::Trainer final : public Steerable {
 public:
  Trainer(SimRun& run, int rank) : run_(run), rank_(rank) {}

  Result<void> prepare(const Order& order, const Settings&) override {
    return run_.options_.prepare ? run_.options_.prepare(rank_, order) : Result<void>();
  }
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    run_.records_[static_cast<std::size_t>(rank_)].changes.push_back(
        {step, now.digest(run_.schema_), now.integer("eval.batches")});
    return {};
  }
  Result<CallResult> call(const Call& call, std::int64_t step) override {
    run_.records_[static_cast<std::size_t>(rank_)].calls.push_back(call.action + " at " +
                                                                   std::to_string(step));
    if (!run_.options_.call) return DoneAtStep{step};
    return run_.options_.call(rank_, call, step, run_.control(rank_).gate());
  }

 private:
  SimRun& run_;
  int rank_;
};

SimRun::SimRun(Options options)
    : options_(std::move(options)), at_(static_cast<std::size_t>(options_.ranks)) {
  if (options_.take_turns && options_.console_program.empty()) scheduler_.emplace(options_.world.seed);
  world_ = std::make_unique<SimWorld>(options_.ranks, options_.world);
  records_.resize(static_cast<std::size_t>(options_.ranks));
  ControlOptions control;
  control.schema = schema_;
  control.settings = Settings::defaults(schema_);
  control.settings.set("train.steps", std::int64_t{1000000000}, "test");
  for (const auto& [name, value] : options_.settings) control.settings.set(name, value, "test");
  control.times = options_.times;
  control.ahead = options_.ahead;
  control.first_order_id = 100;  // beyond those ahead
  control.run.name = "sim";
  control.run.directory = options_.run_directory;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    channels_.push_back(make_control_channel(world_->channel(rank), control.settings));
    progress_.push_back(std::make_unique<Progress>());
    ledgers_.push_back(std::make_unique<Ledger>());
    trainers_.push_back(std::make_unique<Trainer>(*this, rank));
    control.channel = channels_.back().get();
    control.progress = progress_.back().get();
    control.ledger = ledgers_.back().get();
    if (rank == 0) {
      control.console_program = options_.console_program;
      control.observer = [this](const Observed& observed) {
        const auto [topic, data] = told(observed);
        MutexLock lock(mutex_);
        if (topic == "order")
          orders_.emplace(std::pair(data.at("ref"), data.at("state").get<std::string>()), data);
        reports_.emplace_back(topic, data);
        reported_.notify_all();
      };
    }
    controls_.push_back(std::make_unique<Control>(control));
    controls_.back()->set_steerable(*trainers_.back());
  }
  for (auto& one : controls_) one->start();
  for (int rank = 0; rank < options_.ranks; ++rank)
    threads_.emplace_back("training", [this, rank] { train(rank); });
}

SimRun::~SimRun() {
  if (std::any_of(threads_.begin(), threads_.end(), [](const auto& one) { return one.joinable(); })) stop();
  for (auto& one : controls_) one->finish(ended_well());
}

void SimRun::train(int rank) {
  auto& record = records_[static_cast<std::size_t>(rank)];
  StepGate& gate = control(rank).gate();
  std::int64_t step = 0;
  for (; gate.enter(step) == StepGate::Verdict::train; ++step) {
    progress_[static_cast<std::size_t>(rank)]->enter(Phase::forward);
    world_->hold(rank);
    record.batches_used.push_back(gate.settings().integer("eval.batches"));
    if (options_.step_time.count() > 0) sleep_for(options_.step_time);
    keep_together(rank, step);
  }
  at_[static_cast<std::size_t>(rank)] = std::numeric_limits<std::int64_t>::max();
  record.ending = gate.ending();
  record.end_step = step;
}

/// Where training would wait for the others in a collective.
void SimRun::keep_together(int rank, std::int64_t step) {
  at_[static_cast<std::size_t>(rank)] = step;
  for (const auto& other : at_)
    while (other < step - kLead) look_again();
}

void SimRun::order(const std::string& ref, const Json& changes, const Json& calls, const Json& more) {
  Json order = {{"session", "s1"}, {"user", "ann"}, {"changes", Json::array()}, {"calls", Json::array()}};
  for (const auto& [name, value] : changes.items())
    order["changes"].push_back({{"name", name}, {"value", value}});
  for (const auto& action : calls)
    order["calls"].push_back(action.is_string() ? Json{{"action", action}} : action);
  order.update(more);
  send({{"type", "order"}, {"ref", ref}, {"order", std::move(order)}});
}

Json SimRun::wait_for(const std::string& topic, const std::function<bool(const Json&)>& fits) {
  MutexLock lock(mutex_);
  Json found;
  const auto look = [&] {
    for (const auto& [at, data] : reports_)
      if (at == topic && fits(data)) {
        found = data;
        return true;
      }
    return false;
  };
  reported_.wait_for(lock, kPatience, look);
  return found;
}

Json SimRun::wait_for_any(const std::string& ref, const std::vector<std::string>& states) {
  MutexLock lock(mutex_);
  Json found;
  reported_.wait_for(lock, kPatience, [&] {
    for (const auto& state : states)
      if (const auto report = orders_.find({ref, state}); report != orders_.end()) found = report->second;
    return !found.is_null();
  });
  return found;
}

Json SimRun::wait_for_order(const std::string& ref, const std::string& state) {
  return wait_for_any(ref, {state});
}

Json SimRun::wait_for_outcome(const std::string& ref) {
  return wait_for_any(ref, {"applied", "refused", "aborted", "withdrawn"});
}

Json SimRun::wait_for_status(const std::function<bool(const Json&)>& fits) {
  const auto deadline = SteadyClock::now() + kPatience;
  while (SteadyClock::now() < deadline) {
    const Json status = to_json(controls_[0]->status());
    if (fits(status)) return status;
    sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

std::vector<Json> SimRun::reports(const std::string& topic) {
  MutexLock lock(mutex_);
  std::vector<Json> found;
  for (const auto& [at, data] : reports_)
    if (at == topic) found.push_back(data);
  return found;
}

void SimRun::stop() {
  order("stop", Json::object(), {"run.stop"});
  join();
}

void SimRun::join() {
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

void SimRun::wait_for_step(std::int64_t step) {
  const auto deadline = SteadyClock::now() + kPatience;
  while (this->step(0) < step && SteadyClock::now() < deadline) look_again();
}

}  // namespace footplate::testing
