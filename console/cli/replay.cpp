// footplate replay: runs a run's configuration again with the orders of its journal, each at its step.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/link/find_run.h"
#include "console/client/runs/run_index.h"
#include "console/launch/run_dir/order_history.h"
#include "console/launch/run_dir/run_directory.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/command.h"
#include "console/launch/supervise/supervisor.h"
#include "protocol/exit_codes.h"
#include "protocol/gone_settings.h"
#include "protocol/words.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/result_file.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNonfinite = "guard.nonfinite";

struct ReplayOptions {
  std::string run;
  std::string name;
};

/// What a run started from, and what was ordered since.
struct Recording {
  Settings settings;
  std::vector<Order> orders;
  int ranks = 1;
  std::vector<int> host_groups;       ///< by rank, where that run was on several hosts
  std::optional<std::string> resume;  ///< another run's checkpoint that it began with
};

/// Empty: all ranks were on one host.
std::vector<int> host_groups_of(const std::vector<std::string>& hosts) {
  std::vector<int> groups;
  for (const std::string& host : hosts)
    groups.push_back(static_cast<int>(std::find(hosts.begin(), hosts.end(), host) - hosts.begin()));
  const bool is_one = std::all_of(groups.begin(), groups.end(), [](int group) { return group == 0; });
  return is_one ? std::vector<int>() : groups;
}

/// A replay adds in one order throughout: that of the first start.
void warn_of_other_groups(const std::vector<StartRecord>& starts) {
  const auto groups = host_groups_of(starts.front().hosts);
  const auto other = std::find_if(starts.begin(), starts.end(), [&](const StartRecord& start) {
    return host_groups_of(start.hosts) != groups;
  });
  if (other == starts.end()) return;
  std::fprintf(
      stderr,
      "footplate: warning: start %d had its ranks on hosts in another way than the first one. The last "
      "bits of its sums may differ (comm.hierarchy)\n",
      other->start);
}

/// The first start says from what, all of them on how many ranks.
Result<StartRecord> read_first_start(const fs::path& directory) {
  const auto starts = read_start_records(directory);
  if (!starts) return tl::unexpected(starts.error());
  if (starts->empty())
    return fail(ErrorKind::usage, "there is nothing to replay: no rank of that run has started (" +
                                      (directory / kStartsFile).string() + ")");
  const StartRecord& first = starts->front();
  for (const StartRecord& start : *starts)
    if (start.world_size != first.world_size)
      return fail(ErrorKind::usage, "start " + std::to_string(start.start) + " of that run had " +
                                        std::to_string(start.world_size) + " ranks, its first one " +
                                        std::to_string(first.world_size) +
                                        "; a replay is exact only on one number of ranks");
  warn_of_other_groups(*starts);
  return first;
}

/// What the run set a setting to, or called, and can't be told to the task of now. One that stood at its
/// default all the time is no reason to refuse: whether that made a difference is seen at the end.
Result<void> check_gone(const std::vector<GoneSetting>& settings, const std::vector<GoneChange>& changes) {
  std::map<std::string, Json> defaults;
  std::vector<std::string> told;
  for (const GoneSetting& one : settings)
    if (one.was_default())
      defaults[one.name] = one.value;
    else
      told.push_back(one.name + " was " + one.value.dump() + " (" + one.source + ")");
  for (const GoneChange& one : changes) {
    const auto initial = defaults.find(one.name);
    if (initial != defaults.end() && one.value == initial->second) continue;
    told.push_back((one.order == 0 ? "a later start" : "order " + std::to_string(one.order)) + " had " +
                   change_text(one) + " at step " + std::to_string(one.step));
  }
  if (told.empty()) return {};
  return fail(ErrorKind::usage,
              "the task doesn't declare any more what this run told it: " + join(told, "; ") +
                  ". A replay without that would be another run; give the task that setting or action back, "
                  "or replay with the task's file of then");
}

Result<Recording> read_recording(const fs::path& directory, const Schema& schema) {
  const auto start = read_first_start(directory);
  if (!start) return tl::unexpected(start.error());
  const auto config = read_json_file(config_path(directory, std::max(1, start->start)));
  if (!config) return tl::unexpected(config.error());
  std::vector<GoneSetting> gone;
  auto settings = earlier_settings_from_json(*config, schema, &gone);
  if (!settings) return tl::unexpected(settings.error());
  const auto history = read_history(directory, schema);
  if (!history) return tl::unexpected(history.error());
  if (auto can = check_gone(gone, history->gone); !can) return tl::unexpected(can.error());
  for (const GoneSetting& one : gone)
    std::fprintf(stderr, "footplate: warning: %s\n", left_out_text(schema, one).c_str());

  Recording recording;
  recording.settings = *std::move(settings);
  // Where time ended the run, its journal has the stop at its step.
  recording.settings.set("run.time_limit", Value(0.0), "replay");
  // What it ordered is in the journal, too; more would be of this replay's machine.
  if (recording.settings.has("comm.auto"))
    recording.settings.set("comm.auto", Value(std::string("off")), "replay");
  if (recording.settings.has(kNonfinite))
    recording.settings.set(kNonfinite, without_pause(recording.settings.value(kNonfinite)), "replay");
  recording.orders = orders_to_replay(*history);
  recording.ranks = std::max(1, start->world_size);
  recording.host_groups = host_groups_of(start->hosts);
  if (!start->resumed.empty()) recording.resume = start->resumed;
  return recording;
}

Result<RunPlan> plan_of(const Recording& recording, Schema schema) {
  RunPlan plan;
  auto id = new_run_id();
  if (!id) return tl::unexpected(id.error());
  plan.id = *std::move(id);
  plan.program_folder = program_folder();
  plan.ranks = recording.ranks;  // on this machine, wherever they were
  plan.host_groups = recording.host_groups;
  plan.resume = recording.resume;
  plan.schema = std::move(schema);
  if (auto command = rank_command(plan, {}, PrivateFolders::of(plan.id)); !command)
    return tl::unexpected(command.error());
  return plan;
}

/// What came of it, for stderr, and the exit code: 0 where the state is the recorded one, however that run
/// ended; 1 where it is another.
int compare(const RunRecord& original, const std::string& name, const std::optional<RunResult>& result,
            int code) {
  if (!result || !result->state_hash) return code;  // it failed and has said so
  const auto then = original.result ? original.result->state_hash : std::nullopt;
  const std::string& now = *result->state_hash;
  const auto step = result->step;
  if (!then) {
    std::fprintf(stderr,
                 "footplate: %s has no final state to compare with; %s ended at step %lld with state %s\n",
                 original.name().c_str(), name.c_str(), static_cast<long long>(step), now.c_str());
    return code;
  }
  if (*then == now && step == original.step()) {
    std::fprintf(stderr, "footplate: %s is bit-equal to %s: state %s at step %lld\n", name.c_str(),
                 original.name().c_str(), now.c_str(), static_cast<long long>(step));
    return static_cast<int>(ExitCode::done);
  }
  std::fprintf(stderr, "footplate: %s differs: state %s at step %lld, %s had %s at step %lld\n", name.c_str(),
               now.c_str(), static_cast<long long>(step), original.name().c_str(), then->c_str(),
               static_cast<long long>(original.step()));
  return code != 0 ? code : static_cast<int>(ExitCode::failed);
}

Result<void> prepare(const RunDirectory& directory, const Recording& recording) {
  if (auto logs = make_logs(directory.path); !logs) return logs;
  return write_orders_ahead(directory.path, 1, OrdersWhy::replay, recording.orders);
}

Result<int> replay(const ReplayOptions& options) {
  Signals signals;  // before anything is made that a signal would leave behind
  const auto original = find_run(options.run, Wanted::any);
  if (!original) return tl::unexpected(original.error());
  auto schema = load_schema_of_run(original->directory, 1);
  if (!schema) return tl::unexpected(schema.error());
  if (original->result && original->result->recoveries.value_or(0) > 0)
    return fail(ErrorKind::usage, original->name() +
                                      " lost ranks on its way and went on with fewer; a replay is exact " +
                                      "only on one number of ranks");
  auto recording = read_recording(original->directory, *schema);
  if (!recording) return tl::unexpected(recording.error());
  auto plan = plan_of(*recording, *std::move(schema));
  if (!plan) return tl::unexpected(plan.error());
  const auto directory = options.name.empty() ? take_free_run_directory(original->name() + "-replay")
                                              : take_run_directory(options.name, false);
  if (!directory) return tl::unexpected(directory.error());
  if (auto prepared = prepare(*directory, *recording); !prepared) {
    abandon_run_directory(*directory);
    return tl::unexpected(prepared.error());
  }
  plan->directory = directory->path;
  plan->name = directory->path.filename();
  sweep_abandoned_folders();
  add_to_index(directory->path);
  std::fprintf(stderr, "footplate: %s replays %s: %zu orders, %d ranks\n", plan->name.c_str(),
               original->name().c_str(), recording->orders.size(), recording->ranks);
  const std::string name = plan->name;
  Outlet out(STDOUT_FILENO);
  const int code = Supervisor(*std::move(plan), recording->settings, *directory, signals, out).run();
  return compare(*original, name, read_result_file(directory->path / kResultFile), code);
}

}  // namespace

Handler declare_replay(CLI::App& command) {
  auto options = std::make_shared<ReplayOptions>();
  command.add_option("RUN", options->run,
                     "name or path of the run; left out: the only live or the newest one");
  command.add_option("--name", options->name, "name of the new run; left out: RUN-replay-1")
      ->check(why_no_run_name);
  return [options] { return replay(*options); };
}

}  // namespace footplate
