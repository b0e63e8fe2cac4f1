#include "console/launch/supervise/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "console/client/runs/run_record.h"
#include "console/launch/run_dir/earlier_state.h"
#include "console/launch/run_dir/kept_settings.h"
#include "console/launch/run_dir/missing_result.h"
#include "console/launch/run_dir/order_history.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/launch_failure.h"
#include "console/launch/supervise/ending_times.h"
#include "console/launch/supervise/explanation.h"
#include "console/launch/supervise/other_hosts.h"
#include "console/launch/supervise/requeue.h"
#include "console/launch/supervise/vanished_ranks.h"
#include "protocol/exit_codes.h"
#include "protocol/host_name.h"
#include "protocol/iso_time.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/failed_devices.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/lease.h"
#include "run_files/next_start.h"
#include "run_files/result_file.h"
#include "run_files/run_file.h"
#include "run_files/starts.h"
#include "run_files/world_terms.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kLongestSleep =
    200ms;                         ///< longest sleep of the loop: what no descriptor tells is seen by then
constexpr auto kOneRequest = 1s;   ///< signals within it are one
constexpr auto kReaderTakes = 2s;  ///< for the last lines, by a slow reader of stdout

/// As stdout: never waited for. A run whose terminal stands still has to hear a signal all the same.
Outlet& words() {
  static Outlet outlet(STDERR_FILENO);
  return outlet;
}

void say(const std::string& text) {
  words().push("footplate: " + text + "\n");
  words().flush();
}

/// Sets the lines of a start apart from those of the starts before it.
void mark_start(const std::filesystem::path& log, int start) {
  std::error_code none;
  if (const auto size = std::filesystem::file_size(log, none); !none && size > 0)
    std::ofstream(log, std::ios::app) << kStartMark << start << "\n";
}

/// What this command ends with, once another one goes on with the run; it isn't written.
RunResult taken_over() {
  RunResult result;
  result.code = static_cast<int>(ExitCode::failed);
  result.reason = "the run goes on without this host";
  result.note = "this host couldn't be reached; footplate status tells where the run is";
  return result;
}

/// Of an earlier start, or of this one once it is over.
void forget_start_notes(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory / kStartNotesFolder, ignored);
}

std::uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

/// What mpirun has said last in a start that is over: its boxes stand where rank 0's lines would.
std::string said_at_start(const std::filesystem::path& directory, std::uintmax_t lines_before) {
  constexpr std::uintmax_t kLastWords = 256 * 1024;
  const std::uintmax_t size = size_of(batch_log(directory));
  const std::uintmax_t from = std::max(lines_before, size - std::min(size, kLastWords));
  return launcher_words(directory) + "\n" + FileTail(batch_log(directory), from).rest();
}

/// Whether the ranks were ready, and didn't fail in the very first step.
bool has_done_a_step(const std::filesystem::path& directory, int start, const RunResult& result) {
  if (is_starting(directory)) return false;
  return result.code != static_cast<int>(ExitCode::failed) || result.step > first_step_of(directory, start);
}

/// mpirun's words before it ends all ranks.
constexpr const char* kLostDaemon = "PRTE has lost communication with a remote daemon";

constexpr const char* kNoDevice = "each device of this machine has failed in this job";

/// "2 on n1, 1 on n3".
std::string places_text(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += (text.empty() ? "" : ", ") + std::to_string(host.slots) + " on " + host.name;
  return text;
}

}  // namespace

Supervisor::Supervisor(RunPlan plan, Settings settings, RunDirectory directory, Signals& signals, Outlet& out)
    : plan_(std::move(plan)),
      settings_(std::move(settings)),
      directory_(std::move(directory)),
      folders_(PrivateFolders::of(plan_.id)),
      signals_(signals),
      out_(out),
      lines_(batch_log(directory_.path), size_of(batch_log(directory_.path))),  // not those of earlier starts
      notifier_(plan_.notify, plan_.name, directory_.path, say),
      alarms_(directory_.path, plan_.name),
      disk_(directory_.path),
      policy_(plan_.name, directory_.path, plan_.restarts, plan_.restarts_asked) {
  if (plan_.pool.hosts.empty()) plan_.pool.ranks = plan_.ranks;
}

int Supervisor::run() {
  const std::filesystem::path before = newest_checkpoint(directory_.path);
  renew_lease(directory_.path);
  RunResult result;
  if (const auto lock = folders_.create()) {
    const auto janitor = Janitor::start(plan_, directory_.earlier, folders_, {*lock, directory_.lock});
    janitor_ = janitor ? &*janitor : nullptr;
    result = run_starts();
    end_stragglers(folders_, kConsoleEnds);
    folders_.remove();
    if (!goes_on_elsewhere_) {
      record(result);
      give_room_of_the_end_back(directory_.path);
    }
    janitor_ = nullptr;
    ::close(*lock);
  } else {
    result = write_missing_result(directory_.path, {.cause = lock.error().message}, 0);
    if (leaves_no_trace()) record(result);
  }
  pass_lines_on();
  out_.drain(kReaderTakes);
  const std::string explained = leaves_no_trace() && !goes_on_elsewhere_
                                    ? explanation_of_refused(plan_.name, directory_.path, result)
                                    : explanation(plan_.name, directory_.path, result);
  if (!explained.empty()) say(explained);
  put_back(result, before);
  tell_end(result, explained);
  words().drain(kReaderTakes);
  return result.code;
}

void Supervisor::record(const RunResult& result) {
  end_lease(directory_.path);
  if (leaves_no_trace()) {
    write_refused_start(directory_.path, result);
    directory_.earlier.put_back();
  } else if (auto written = record_end(directory_.path, result.step); !written) {
    say(written.error().message);
  }
}

void Supervisor::tell_end(const RunResult& result, const std::string& explained) {
  const std::string how = result.reason == kEndedDone ? "is done" : "was stopped (" + result.reason + ")";
  const std::string text =
      explained.empty() ? plan_.name + " " + how + " at step " + std::to_string(result.step) : explained;
  notifier_.tell({"end", text.substr(0, text.find('\n')), result.step, result.code});
  notifier_.wait();
}

void Supervisor::look_at_state(bool now) {
  constexpr auto kOften = 1s;
  if (plan_.notify.empty() || (!now && steady_clock::now() < look_again_)) return;
  look_again_ = steady_clock::now() + kOften;
  for (const Notice& notice : alarms_.take(steady_clock::now())) notifier_.tell(notice);
  const auto record = read_run_file(directory_.path);
  if (!record) return;
  const auto step = last_step(folders_).value_or(record->step);
  const bool paused = record->state == RunState::paused;
  if (paused && !paused_)
    notifier_.tell({"pause", plan_.name + " is paused at step " + std::to_string(step), step, {}});
  paused_ = paused;
  const int ranks = record->world_size.value_or(ranks_left_);
  if (const int lost = std::exchange(ranks_left_, ranks) - ranks; lost > 0)
    notifier_.tell({"lost",
                    plan_.name + " lost " + (lost == 1 ? "a rank" : std::to_string(lost) + " ranks") +
                        " by step " + std::to_string(step) + "; it goes on with " + ranks_text(*record) +
                        " ranks",
                    step,
                    {}});
}

void Supervisor::put_back(const RunResult& result, const std::filesystem::path& before) {
  if (!plan_.requeue || result.code == 0) return;
  const bool saved = newest_checkpoint(directory_.path) != before;
  const std::string job = "Slurm's job " + plan_.requeue->id;
  const RequeueFacts facts{.signal = first_signal_,
                           .near_end = came_near_end_,
                           .saved = saved,
                           .in_vain = was_requeued_in_vain(directory_.path, *plan_.requeue)};
  if (const std::string why = why_not_requeued(result, facts); !why.empty()) {
    say(job + " is not put back into the queue: " + why);
    return;
  }
  keep_requeue(directory_.path, *plan_.requeue, saved);  // Slurm may end this process at once
  if (const auto done = requeue(*plan_.requeue); !done)
    say(job + " could not be put back into the queue: " + done.error().message);
  else
    say(job + " is put back into the queue, and goes on from there");
}

void Supervisor::renew_lease_in_time() {
  if (steady_clock::now() < renew_at_) return;
  renew_at_ = steady_clock::now() + kLeaseIsRenewed;
  if (is_taken_over())
    end_by_ = steady_clock::now();  // what the ranks write from now on is in the other's way
  else if (plan_.hosts.empty() || !is_left_out(directory_.path, started_))  // else rank 0 renews it
    renew_lease(directory_.path);
}

bool Supervisor::is_taken_over() const {
  if (!is_recorded_) return false;
  const auto record = read_run_file(directory_.path);
  return record && !record->id.empty() && record->id != plan_.id;
}

bool Supervisor::others_have_it() const {
  if (is_taken_over()) return true;
  if (plan_.hosts.empty() || is_starting(directory_.path) || stops_asked_ > 1) return false;
  return goes_on_elsewhere(directory_.path, started_);
}

RunResult Supervisor::run_starts() {
  Beginning beginning{plan_.resume.value_or("")};
  // One that Slurm has put back is the same job.
  if (!plan_.job || plan_.job->restarts == 0) forget_failed_devices(directory_.path);
  if (plan_.pool.spare() > 0 || !read_failed_devices(directory_.path).empty()) {
    record_starting(0s);
    if (!place_ranks())
      return write_missing_result(directory_.path, {.gave_up = kNoDevice}, policy_.restarts());
  }
  if (stops_asked_ > 0)
    return write_missing_result(directory_.path, {.asked = true, .cause = {}}, policy_.restarts());
  for (int start = plan_.start;; ++start) {
    RunResult result = run_once(start, beginning);
    if (goes_on_elsewhere_) return result;
    policy_.ended(start, result, started_ == start && has_done_a_step(directory_.path, start, result));
    if (stops_asked_ > 0) return result;
    const std::string step = std::to_string(result.step);
    if (is_restart_ordered(result) && !is_saved(result)) {
      say(plan_.name + " is not started again: step " + step +
          " could not be saved (log/rank-0.log has why), and what came after the last checkpoint would be "
          "gone");
      return result;
    }
    if (is_restart_ordered(result)) {
      say(plan_.name + " ended at step " + step + " to be started again, as ordered");
    } else if (const auto load = load_ordered(result)) {
      say(plan_.name + " ended at step " + step + " to go back to step " + std::to_string(load->step) +
          ", in branch " + load->branch);
    } else if (!restarts_after(result)) {
      return result;
    }
    set_aside_result(directory_.path, start);
    end_stragglers(folders_, kConsoleEnds);
    folders_.clear();
    const auto length = is_worth_restarting(result) ? policy_.pause() : 0s;
    record_starting(length);  // what the record has is of ranks that are gone
    pause(length);
    if (stops_asked_ == 0 && !place_ranks()) {
      say(plan_.name + " is not started again: " + kNoDevice);
      return as_stopped_between(start, result);
    }
    if (is_taken_over()) {
      goes_on_elsewhere_ = true;
      return taken_over();
    }
    if (stops_asked_ > 0) return as_stopped_between(start, result);
    beginning = next_beginning(beginning, result);
  }
}

/// That it can't be written is said at the start.
void Supervisor::record_starting(std::chrono::seconds pause) {
  RunFile record = starting_record(plan_, folders_.socket);
  record.starts_at = iso_time(std::chrono::system_clock::now() + pause);
  const auto kept = update_run_file(directory_.path, record);
  is_recorded_ = is_recorded_ || kept;
}

RunResult Supervisor::as_stopped_between(int start, RunResult result) const {
  std::error_code ignored;
  std::filesystem::remove(earlier_result_path(directory_.path, start), ignored);
  if (!newest_checkpoint(directory_.path).empty()) result.code = static_cast<int>(ExitCode::resumable);
  [[maybe_unused]] const auto kept = write_result_file(directory_.path / kResultFile, result);
  return result;
}

bool Supervisor::restarts_after(const RunResult& result) {
  const bool may_be_a_host = is_starting(directory_.path) && policy_.has_trained();
  const bool is_a_host = may_be_a_host && lacks_a_host();
  // A signal came while hosts were asked: it ends between the two starts.
  if (stops_asked_ > 0) return is_worth_restarting(result);
  const RestartPolicy::Decision decision = policy_.decide(is_a_host);
  if (!decision.why_not.empty()) say(decision.why_not);
  if (!decision.again) return false;
  const std::string text =
      plan_.name + " failed at step " + std::to_string(result.step) + " (" + result.reason + "); " +
      (decision.counts
           ? "restart " + std::to_string(policy_.restarts()) + " of " + std::to_string(policy_.most()) + ","
           : "a start that a host kept from its first step doesn't count; the next one is") +
      " in " + std::to_string(policy_.pause().count()) + " s";
  say(text);
  notifier_.tell({"restart", text, result.step, {}});
  return true;
}

bool Supervisor::lacks_a_host() {
  const auto silent = silent_hosts();
  return std::any_of(plan_.hosts.begin(), plan_.hosts.end(),
                     [&silent](const Host& host) { return silent.contains(host.name); });
}

std::map<std::string, int> Supervisor::count_failed_devices() const {
  std::map<std::string, int> by_host;
  for (const FailedDevice& device : read_failed_devices(directory_.path)) {
    say(name_of(device) + ", has failed in this job, and is left out");
    const bool is_here = !plan_.pool.hosts.empty() && device.host == host_name();
    ++by_host[is_here ? plan_.pool.hosts.front().name : device.host];
  }
  return by_host;
}

bool Supervisor::place_ranks() {
  const std::map<std::string, int> failed = count_failed_devices();
  if (plan_.pool.hosts.empty()) {
    const auto here = failed.find(host_name());
    const int before =
        std::exchange(plan_.ranks, ranks_without(plan_.pool, here != failed.end() ? here->second : 0));
    if (plan_.ranks != before && plan_.ranks > 0)
      say(plan_.name + ": " + std::to_string(plan_.ranks) + " of " + std::to_string(plan_.pool.ranks) +
          " ranks");
    return plan_.ranks > 0;
  }
  const auto silent = silent_hosts();
  if (stops_asked_ > 0) return true;
  std::set<std::string> names;
  for (const auto& [host, why] : silent) {
    say("host " + host + " starts no process, and is left out: " + why);
    names.insert(host);
  }
  const std::string before = host_list_text(plan_.hosts);
  plan_.hosts = take_hosts(plan_.pool, names, failed);
  plan_.ranks = slots_of(plan_.hosts);
  if (host_list_text(plan_.hosts) != before)
    say(plan_.name + ": " + std::to_string(plan_.ranks) + " of " + std::to_string(plan_.pool.ranks) +
        " ranks, " + places_text(plan_.hosts));
  return plan_.ranks > 0;
}

std::map<std::string, std::string> Supervisor::silent_hosts() {
  if (plan_.pool.hosts.size() < 2) return {};
  HostProbe probe(plan_, {plan_.pool.hosts.begin() + 1, plan_.pool.hosts.end()}, folders_);
  while (!probe.is_done() && stops_asked_ == 0) wait_between_starts();
  return stops_asked_ == 0 ? probe.silent() : std::map<std::string, std::string>();
}

void Supervisor::pause(std::chrono::seconds length) {
  for (const auto end = steady_clock::now() + length; steady_clock::now() < end && stops_asked_ == 0;)
    wait_between_starts();
}

void Supervisor::wait_between_starts() {
  wait_for_something();
  renew_lease_in_time();
  pass_lines_on();
  for (const int number : signals_.take()) {
    if (stops_asked_++ > 0) continue;
    remember_signal(number);
    say(std::string(signal_name(number)) + " between two starts: " + plan_.name + " is not started again");
  }
}

Supervisor::Beginning Supervisor::next_beginning(const Beginning& before, const RunResult& result) const {
  if (auto load = load_ordered(result)) return {load->path, load, result.step};
  // Without a checkpoint of its own it goes on from where it began, and so does a branch without one.
  if (before.load && newest_in(branch_folder(directory_.path, before.load->branch)).empty()) return before;
  return {newest_checkpoint(directory_.path).empty() ? plan_.resume.value_or("") : "auto"};
}

Settings Supervisor::settings_of(int start, const Beginning& beginning) const {
  const Settings settings = start == plan_.start ? settings_ : as_of_start(settings_, plan_.start);
  if (beginning.load) return with_loaded_settings(settings, plan_.schema, *beginning.load);
  // A journal that can't be read keeps nobody from going on.
  const auto kept = with_kept_settings(settings, plan_.schema, directory_.path, start, beginning.resume);
  if (!kept) say("settings that were changed live are as the run was started with: " + kept.error().message);
  return kept.value_or(settings);
}

/// What the ranks of this start read.
Result<void> Supervisor::write_start(int start, const Beginning& beginning, const Settings& settings) {
  if (auto kept = write_json_file(config_path(directory_.path, start), settings.to_json()); !kept)
    return kept;
  // What ckpt.load tells of the next start is computed from these (LoadHandler).
  if (auto kept =
          write_json_file(directory_.path / kGivenFile, as_of_start(settings_, plan_.start).to_json());
      !kept)
    return kept;
  if (start > 1 && !beginning.load) {
    const auto again = schedule_again(directory_.path, start, plan_.schema);
    if (!again) say("changes made past the checkpoint are not applied again: " + again.error().message);
    for (const std::string& line : again.value_or(std::vector<std::string>())) say(line);
  }
  return update_run_file(directory_.path, starting_record(plan_, folders_.socket));
}

RunResult Supervisor::run_once(int start, const Beginning& beginning) {
  reserve_room_for_the_end(directory_.path, plan_.ranks);  // an earlier start may have used it
  const Settings settings = settings_of(start, beginning);
  const auto not_started = [&](const Error& error) {
    return write_missing_result(directory_.path, {.cause = error.message}, policy_.restarts());
  };
  if (auto written = write_start(start, beginning, settings); !written) return not_started(written.error());
  is_recorded_ = true;
  started_ = start;
  const auto command = rank_command(
      plan_,
      {.number = start,
       .resume = beginning.resume,
       .branch = beginning.load ? beginning.load->branch : "",
       .left = beginning.left,
       .ran = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - plan_.began)},
      folders_);
  if (!command) return not_started(command.error());
  forget_start_notes(directory_.path);
  forget_terms(directory_.path);
  mark_start(launcher_log(directory_.path), start);
  const std::uintmax_t lines_before = size_of(batch_log(directory_.path));
  auto child = start_child(*command, batch_log(directory_.path), launcher_log(directory_.path));
  if (!child) return not_started(child.error());
  if (janitor_ != nullptr) janitor_->watch({child->pid(), start, policy_.restarts()});
  end_by_ = steady_clock::time_point::max();
  ranks_left_ = plan_.ranks;
  StartWatch watched(directory_.path, folders_, plan_.ranks, settings.number("comm.init_timeout_s"));
  planned_.emplace(plan_, folders_, start, planned_restarts_, say);
  HowEnded how = watch(*child, watched);
  const bool mpirun_was_killed = command->by_mpirun && !how.asked && WIFSIGNALED(how.wait_status) &&
                                 end_by_ == steady_clock::time_point::max();
  end_launched(child->pid());
  if (planned_->is_ordered()) ++planned_restarts_;
  planned_.reset();
  goes_on_elsewhere_ = others_have_it();
  if (goes_on_elsewhere_) return taken_over();
  if (!plan_.hosts.empty()) WorldTerms(directory_.path, start).close(host_name());
  if (how.cause.empty() && !how.asked && is_starting(directory_.path))
    how.cause = explain_unreached(said_at_start(directory_.path, lines_before), mpi_prefix(*command));
  how.step = last_step(folders_);
  look_at_state(/*now=*/true);  // what it was told of last
  forget_start_notes(directory_.path);
  if (!how.asked && said_at_start(directory_.path, lines_before).find(kLostDaemon) != std::string::npos)
    how.gave_up = "mpirun has ended the ranks, since it can't reach a host; log/launcher.log has its words";
  else if (mpirun_was_killed)
    how.gave_up = std::string("mpirun was ended by ") + signal_name(WTERMSIG(how.wait_status));
  return write_missing_result(directory_.path, how, policy_.restarts());
}

HowEnded Supervisor::watch(Subprocess& child, StartWatch& start) {
  std::string failed, gave_up;
  VanishedRanks vanished(directory_.path);
  while (!child.ended()) {
    wait_for_something();
    renew_lease_in_time();
    for (const int number : signals_.take()) on_signal(child, number);
    pass_lines_on();
    if (const std::string full = disk_.look(steady_clock::now()); !full.empty())
      say(plan_.name + ": " + full);
    look_at_start(start, failed);
    look_at_state();
    planned_->look(steady_clock::now());
    if (gave_up.empty() && plan_.hosts.empty() && vanished.look(steady_clock::now())) {
      gave_up = "all ranks were lost, and mpirun didn't end";
      end_by_ = std::min(end_by_, steady_clock::now());
    }
    end_what_lingers(child);
  }
  pass_lines_on();
  if (failed.empty() && stops_asked_ == 0) failed = start.lost_rank().value_or("");
  return {.wait_status = child.wait_status(), .asked = stops_asked_ > 0, .cause = failed, .gave_up = gave_up};
}

void Supervisor::look_at_start(StartWatch& start, std::string& failed) {
  if (!failed.empty() || stops_asked_ > 0) return;
  const auto now = steady_clock::now();
  if (const std::string waits = start.patience(now); !waits.empty()) say(plan_.name + ": " + waits);
  if (const auto why = start.look(now)) {
    failed = *why;
    end_by_ = now;
  }
}

void Supervisor::wait_for_something() {
  const auto unless_empty = [](const Outlet& outlet) {
    return pollfd{outlet.pending() ? outlet.fd() : -1, POLLOUT, 0};
  };
  std::array<pollfd, 4> ready{
      {{signals_.fd(), POLLIN, 0}, {lines_.fd(), POLLIN, 0}, unless_empty(out_), unless_empty(words())}};
  ::poll(ready.data(), ready.size(), static_cast<int>(std::chrono::milliseconds(kLongestSleep).count()));
}

/// TERM and HUP come together where systemd ends a login, TERM twice from timeout(1), HUP twice as a terminal
/// closes. Ctrl-C comes twice from people alone.
bool Supervisor::is_same_request(int number) const {
  if (stops_asked_ == 0 || number == SIGQUIT) return false;
  if (number == SIGHUP) return true;
  return (number != SIGINT || first_signal_ != SIGINT) && steady_clock::now() - signaled_at_ < kOneRequest;
}

void Supervisor::on_signal(Subprocess& child, int number) {
  if (is_same_request(number)) return;
  if (stops_asked_ == 0) remember_signal(number);
  stops_asked_ += number == SIGQUIT ? 2 : 1;
  if (stops_asked_ == 1 && is_starting(directory_.path)) {
    // Nothing to save; and a rank that can't handle the signal yet would die of it while the others wait for
    // it.
    end_by_ = steady_clock::now();
    say(std::string(signal_name(number)) + " before the ranks were ready: stopping at once");
  } else if (stops_asked_ == 1) {
    child.signal(SIGUSR2);
    say(std::string(signal_name(number)) + ": saving and stopping; a second signal stops at once");
  } else if (stops_asked_ == 2 || number == SIGQUIT) {
    end_by_ = steady_clock::now();
    say(std::string(signal_name(number)) + ": stopping at once");
  }
}

void Supervisor::remember_signal(int number) {
  constexpr std::int64_t kMinute = 60;
  first_signal_ = number;
  signaled_at_ = steady_clock::now();
  if (!plan_.requeue || !plan_.requeue->end_s) return;
  // Later than that the job was given more time since, and the end isn't known.
  const std::int64_t past_end = static_cast<std::int64_t>(std::time(nullptr)) - *plan_.requeue->end_s;
  came_near_end_ = past_end >= -kMinute && past_end <= 2 * kMinute;
}

void Supervisor::pass_lines_on() {
  for (std::string text = lines_.lines(); !text.empty(); text = lines_.lines()) {
    out_.push(text);
    out_.flush();
  }
  out_.flush();
  words().flush();
}

void Supervisor::end_what_lingers(Subprocess& child) {
  std::error_code ignored;
  if (end_by_ == steady_clock::time_point::max() &&
      std::filesystem::exists(directory_.path / kResultFile, ignored))
    end_by_ = steady_clock::now() + (planned_->has_lost_a_host() ? kLostHostToExit : kResultToExit);
  if (steady_clock::now() < end_by_) return;
  end_launched(child.pid());
  end_by_ = steady_clock::now() + kResultToExit;
}

}  // namespace footplate
