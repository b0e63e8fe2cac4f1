#include "console/launch/supervise/planned_restart.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "protocol/order.h"
#include "protocol/words.h"
#include "run_files/run_file.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kLooks = 2s;
constexpr auto kTriesAgain = 60s;
constexpr auto kConsoleTakes = 1s;  ///< to accept a connection

/// Those that the start doesn't use, also since they didn't answer.
std::vector<Host> unused_hosts(const RunPlan& plan) {
  std::vector<Host> unused;
  for (const Host& host : plan.pool.hosts)
    if (std::none_of(plan.hosts.begin(), plan.hosts.end(),
                     [&host](const Host& used) { return used.name == host.name; }))
      unused.push_back(host);
  return unused;
}

/// Whether mpirun starts its daemons as a step of the Slurm job, which ends with any of its hosts.
bool is_started_by_srun(const RunPlan& plan) {
  const char* plm = std::getenv("PRTE_MCA_plm");
  return plan.job && (plm == nullptr || std::string_view(plm) != "ssh");
}

}  // namespace

PlannedRestart::PlannedRestart(const RunPlan& plan, const PrivateFolders& folders, int start, int before,
                               std::function<void(const std::string&)> say)
    : plan_(plan),
      folders_(folders),
      terms_(plan.directory, start),
      say_(std::move(say)),
      order_again_(Clock::now() + std::min<Clock::duration>(before * 10min, 1h)) {}

void PlannedRestart::look(Clock::time_point now) {
  if (plan_.hosts.empty() || is_ordered_) return;
  if (console_) return look_at_answer(now);
  if (now < look_again_) return;
  look_again_ = now + kLooks;
  look_at_terms();
  if (lost_.empty() || now < order_again_) return;
  if (is_started_by_srun(plan_))
    order("host " + join(lost_, " and ") + " is lost, and Slurm will end mpirun's step", now);
  else if (ranks_changed_)
    order("host " + join(lost_, " and ") +
              " is lost, and ranks have changed since: mpirun would end the run "
              "in some minutes",
          now);
  else
    look_for_spare_hosts(now);
}

bool PlannedRestart::has_lost_a_host() {
  if (plan_.hosts.empty()) return false;
  look_at_terms();
  return !lost_.empty();
}

void PlannedRestart::look_at_terms() {
  const auto term = terms_.newest();
  if (!term || term->number == 0 || term->world.lost_hosts.empty()) return;
  lost_ = term->world.lost_hosts;
  const auto before = terms_.read(term->number - 1);
  ranks_changed_ = ranks_changed_ || (before && before->world.lost_hosts.size() == lost_.size());
}

void PlannedRestart::look_for_spare_hosts(Clock::time_point now) {
  const std::vector<Host> unused = unused_hosts(plan_);
  if (unused.empty()) return;
  if (!probe_ && now >= probe_again_) probe_.emplace(plan_, unused, folders_);
  if (!probe_ || !probe_->is_done()) return;
  const auto silent = probe_->silent();
  probe_.reset();
  probe_again_ = now + kTriesAgain;
  const auto answers = std::find_if(unused.begin(), unused.end(),
                                    [&silent](const Host& host) { return !silent.contains(host.name); });
  if (answers != unused.end())
    order("host " + join(lost_, " and ") + " is lost, and " + answers->name + " can take its place", now);
}

void PlannedRestart::order(const std::string& reason, Clock::time_point now) {
  order_again_ = now + kTriesAgain;
  if (is_paused()) {  // the next start would train on
    if (!std::exchange(waits_for_resume_, true))
      say_(plan_.name + ": " + reason + "; the run is started again once it isn't paused any more");
    order_again_ = now + kLooks;
    return;
  }
  auto console = Connection::open(folders_.socket.string(), now + kConsoleTakes);
  if (!console) {  // rank 0 may be on another host
    if (!std::exchange(cant_order_, true))
      say_(plan_.name + ": " + reason +
           "; the run's console isn't reached from here. run.restart() at the prompt " +
           "has the run started again");
    return;
  }
  const ClientRequest restart{
      "call", {{"action", "run.restart"}, {"arguments", {{"reason", reason}, {"force", true}}}}};
  if (!console->send(restart, 1)) return;
  say_(plan_.name + ": " + reason + "; the ranks save, and the run is started again");
  console_.emplace(*std::move(console));
}

bool PlannedRestart::is_paused() const {
  const auto record = read_run_file(plan_.directory);
  return record && record->state == RunState::paused;
}

void PlannedRestart::look_at_answer(Clock::time_point now) {
  for (;;) {
    const auto line = console_->receive(now);
    if (!line || (*line && std::holds_alternative<RequestAnswer>(**line))) {
      if (line) take(answer_as<OrderReport>(std::get<RequestAnswer>(**line).value));
      console_.reset();  // else the run may have ended already
      return;
    }
    if (!*line) return;  // no more yet
  }
}

void PlannedRestart::take(const Result<OrderReport>& report) {
  is_ordered_ = report && report->state != OrderState::refused && report->state != OrderState::aborted &&
                report->state != OrderState::withdrawn;
  if (!is_ordered_)
    say_(plan_.name + ": the restart is put off: " + (report ? report->error : report.error().message));
}

}  // namespace footplate
