// footplate run: checks everything that can be checked, writes the run directory, starts the ranks and
// supervises them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "console/cli/attach.h"
#include "console/cli/commands.h"
#include "console/cli/configuration.h"
#include "console/cli/programs.h"
#include "console/cli/scripts.h"
#include "console/client/runs/run_index.h"
#include "console/doctor/readings.h"
#include "console/launch/run_dir/kept_settings.h"
#include "console/launch/run_dir/missing_result.h"
#include "console/launch/run_dir/run_directory.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/allocation.h"
#include "console/launch/start/command.h"
#include "console/launch/start/file_tail.h"
#include "console/launch/start/launched_once.h"
#include "console/launch/start/networks.h"
#include "console/launch/start/slurm_job.h"
#include "console/launch/supervise/detach.h"
#include "console/launch/supervise/supervisor.h"
#include "protocol/gone_settings.h"
#include "protocol/host_name.h"
#include "protocol/port_range.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/next_start.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr int kRestartsOfBatch = 3;

struct RunOptions {
  std::vector<std::string> words;
  std::optional<int> ranks;
  std::optional<std::string> host, hostfile;
  std::optional<int> spare;
  std::string name;
  bool batch = false;
  bool detach = false;
  std::string resume;
  std::optional<int> restarts;
  bool requeue = false;
  std::string notify;
  std::chrono::steady_clock::time_point began;
  std::optional<SlurmJob> job;  ///< that this process is in
  ScriptOptions scripts;
};

/// --resume PATH names a checkpoint, or a run whose newest one is meant.
Result<std::string> checkpoint_of(const std::string& given) {
  std::error_code error;
  fs::path path = fs::absolute(given, error).lexically_normal();
  if (fs::exists(path / kRunFile, error)) {
    path = newest_checkpoint(path);
    if (path.empty()) return fail(ErrorKind::usage, "--resume " + given + ": that run has no checkpoint");
  }
  if (!fs::exists(path / kManifestName, error))
    return fail(ErrorKind::usage,
                "--resume " + given + ": no checkpoint there (" + (path / kManifestName).string() +
                    " is missing); give a folder checkpoints/BRANCH/step-N, a run, or auto" +
                    (given == "latest" || given == "last" || given == "true" ? "; did you mean auto?" : ""));
  return path.string();
}

/// What the run starts from where no config is given: the settings of its last start.
Result<Settings> earlier_settings(const RunOptions& options, Schema& schema) {
  const fs::path directory = runs_folder() / options.name;
  std::error_code error;
  int start = 1;
  while (fs::exists(config_path(directory, start + 1), error)) ++start;
  const auto json = read_json_file(config_path(directory, start));
  if (!json)
    return fail(ErrorKind::usage,
                "run needs a config, or an earlier run to go on with: " + json.error().message);
  auto of_run = load_schema_of(Settings::text_in(*json, "run.task", ""));
  if (!of_run) return tl::unexpected(of_run.error());
  schema = *std::move(of_run);
  std::vector<GoneSetting> gone;
  auto settings = earlier_settings_from_json(*json, schema, &gone);
  if (newest_checkpoint(directory).empty())  // else the ranks tell, as the checkpoint has them, too
    for (const GoneSetting& one : gone)
      std::fprintf(stderr, "footplate: warning: %s\n", left_out_text(schema, one).c_str());
  return settings ? as_of_start(*settings, start) : settings;
}

Result<Settings> settings_of(const RunOptions& options) {
  auto schema = load_schema();
  if (!schema) return tl::unexpected(schema.error());
  const auto words = split_words(options.words);
  Settings start = Settings::defaults(*schema);
  if (words.configs.empty()) {
    if (options.resume != "auto" || options.name.empty())
      return fail(ErrorKind::usage,
                  "run needs a config: footplate run configs/kjv.lua, or --name RUN --resume auto");
    auto earlier = earlier_settings(options, *schema);
    if (!earlier) return earlier;
    start = *std::move(earlier);
  }
  auto settings = configure(words, *schema, std::move(start));
  if (settings) forget_earlier_job(*settings);
  if (settings && options.job) limit_to_job(*settings, *options.job, static_cast<double>(std::time(nullptr)));
  return settings;
}

/// The job scripts, read and checked as `footplate check` does: a mistake that can be seen is seen before
/// anything is started.
Result<std::vector<Script>> scripts_of(const RunOptions& options, const Settings& settings) {
  auto scripts = read_scripts(options.scripts);
  if (!scripts || scripts->empty()) return scripts;
  const auto schema = load_schema_of(settings.string("run.task"));
  if (!schema) return tl::unexpected(schema.error());
  const auto findings = check_scripts(*scripts, options.scripts, *schema, settings);
  if (!findings) return tl::unexpected(findings.error());
  return scripts;
}

/// Whether nobody is there: an error of a script then stops the run, and a crash doesn't end it.
bool is_batch(const RunOptions& options) {
  return options.batch || (!options.detach && ::isatty(STDOUT_FILENO) == 0);
}

Result<void> check_options(const RunOptions& options) {
  if (auto once = check_launched_once(environment_of_process()); !once) return once;
  if (options.resume == "auto" && options.name.empty())
    return fail(ErrorKind::usage, "--resume auto needs --name: which run to go on with (footplate ls -a)");
  if (options.requeue && !options.job)
    return fail(ErrorKind::usage,
                "--requeue is for a Slurm job, and SLURM_JOB_ID isn't set here; leave it out, or submit the "
                "command with sbatch");
  if (options.requeue && options.resume != "auto")
    return fail(
        ErrorKind::usage,
        "--requeue needs --resume auto (and --name): the job's command runs again as it is, and has to go "
        "on with the run");
  return {};
}

Result<RunDirectory> take_directory(const RunOptions& options) {
  if (!options.name.empty())
    return take_run_directory(
        options.name, options.resume == "auto" || came_to_nothing(runs_folder() / options.name), options.job);
  return take_free_run_directory(fs::path(split_words(options.words).configs.front()).stem().string());
}

/// That ranks can take on this machine.
int devices_for(const Settings& settings) {
  if (settings.string("run.device") == "cpu") return 0;
  return visible_devices(read_devices("/"), std::getenv("CUDA_VISIBLE_DEVICES"));
}

/// One for each device, else one.
int ranks_by_default(const Settings& settings) {
  return std::max(1, devices_for(settings));
}

/// What --host, --hostfile, --spare and -n say.
struct HostsAsked {
  std::vector<Host> hosts;  ///< none: all ranks are on this machine
  bool of_job = false;      ///< they are those of the job that this process is in
  int spare = 0;
  int ranks = 0;  ///< 0: one for each slot
};

/// Of the command; else those of the job that this process is in; else those of the last start, with --resume
/// auto.
Result<HostsAsked> hosts_of(const RunOptions& options) {
  HostsAsked asked;
  asked.spare = options.spare.value_or(0);
  asked.ranks = options.ranks.value_or(0);
  Result<std::vector<Host>> hosts;
  if (options.host) {
    hosts = parse_hosts(*options.host);
  } else if (options.hostfile) {
    hosts = read_hostfile(*options.hostfile);
  } else if (auto allocated = allocated_hosts(environment_of_process()); !allocated) {
    return tl::unexpected(allocated.error());
  } else if (*allocated) {
    hosts = **std::move(allocated);
    asked.of_job = true;
  } else if (options.resume == "auto") {
    const auto before = read_run_file(runs_folder() / options.name);
    if (!before || before->hosts.empty()) return asked;
    hosts = parse_hosts(before->named_hosts.empty() ? before->hosts : before->named_hosts);
    if (!options.spare) asked.spare = before->spare_hosts;
    if (!options.ranks) asked.ranks = before->ranks_asked.value_or(0);
  }
  if (!hosts) return tl::unexpected(hosts.error());
  asked.hosts = *std::move(hosts);
  return asked;
}

/// Decides where how many ranks are.
Result<void> place_ranks(RunPlan& plan, const RunOptions& options, const Settings& settings) {
  auto asked = hosts_of(options);
  if (!asked) return tl::unexpected(asked.error());
  plan.network = settings.string("comm.network");
  const auto ports = parse_ports(settings.string("comm.ports"));
  if (!ports) return tl::unexpected(ports.error());
  plan.ports = *ports;
  const std::vector<Host>& hosts = asked->hosts;
  if (hosts.empty()) {
    if (options.spare)
      return fail(ErrorKind::usage,
                  "--spare counts from the end of the hosts (--host, --hostfile, or those of a job), and "
                  "there are none");
    plan.ranks = options.ranks ? *options.ranks : ranks_by_default(settings);
    plan.pool.devices = devices_for(settings);
    return {};
  }
  if (asked->of_job)
    std::fprintf(stderr, "footplate: the ranks are on the hosts of this job, as there is no --host: %s\n",
                 host_list_text(hosts).c_str());
  else if (!is_own_name(hosts.front().name))
    return fail(ErrorKind::usage, "the first host has to be this machine, " + host_name() +
                                      ", which has the console; not " + hosts.front().name +
                                      (options.host || options.hostfile
                                           ? ". Put it first, or start the run on " + hosts.front().name
                                           : ", which was the first one of the last start. Name the hosts "
                                             "that are there: --host " +
                                                 host_name()));
  plan.outlives_hosts = settings.number("comm.host_timeout_s") > 0;
  auto pool = make_host_pool(std::move(asked->hosts), asked->spare, asked->ranks);
  if (!pool) return tl::unexpected(pool.error());
  plan.pool = *std::move(pool);
  plan.hosts = take_hosts(plan.pool, {});
  plan.ranks = slots_of(plan.hosts);
  for (const Host& host : plan.hosts)
    if (plan.ports && plan.ports->count() < ports_needed(host.slots))
      return fail(ErrorKind::usage, "comm.ports: " + plan.ports->text() + " are too few for the " +
                                        std::to_string(host.slots) + " ranks of host " + host.name +
                                        ", which take " + std::to_string(ports_needed(host.slots)));
  return {};
}

Result<RunPlan> plan_of(const RunOptions& options, const Settings& settings) {
  RunPlan plan;
  auto id = new_run_id();
  if (!id) return tl::unexpected(id.error());
  plan.id = *std::move(id);
  plan.program_folder = program_folder();
  auto schema = load_schema_of(settings.string("run.task"));
  if (!schema) return tl::unexpected(schema.error());
  plan.schema = *std::move(schema);
  if (auto placed = place_ranks(plan, options, settings); !placed) return tl::unexpected(placed.error());
  plan.restarts = options.restarts.value_or(is_batch(options) ? kRestartsOfBatch : 0);
  plan.restarts_asked = options.restarts.has_value();
  plan.began = options.began;
  plan.notify = options.notify;
  plan.job = options.job;
  if (options.requeue) plan.requeue = options.job;
  if (!options.resume.empty() && options.resume != "auto") {
    auto checkpoint = checkpoint_of(options.resume);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    plan.resume = *std::move(checkpoint);
  }
  // Whether the programs are there, before anything is written.
  if (auto command = rank_command(plan, {}, PrivateFolders::of(plan.id)); !command)
    return tl::unexpected(command.error());
  return plan;
}

/// As many as -n last asked for, whatever was lost since; 0: there was no start.
int ranks_of_last_start(const fs::path& directory) {
  const auto record = read_run_file(directory);
  if (record && record->ranks_asked) return *record->ranks_asked;
  // Of an older version, or the record was removed.
  const auto starts = read_start_records(directory);
  if (starts && !starts->empty()) return starts->back().world_size;
  return record ? record->world_size.value_or(0) : 0;
}

std::string count_of_ranks(int ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

void complete(RunPlan& plan, const RunOptions& options, const RunDirectory& directory) {
  plan.directory = directory.path;
  plan.name = directory.path.filename();
  plan.start = directory.last_start + 1;
  if (options.resume == "auto" && !newest_checkpoint(directory.path).empty()) plan.resume = "auto";
  const int ranks_before = options.resume == "auto" ? ranks_of_last_start(directory.path) : 0;
  if (ranks_before > 0 && !options.ranks && plan.hosts.empty()) plan.ranks = ranks_before;
  if (ranks_before > 0 && plan.ranks != ranks_before)
    std::fprintf(stderr, "footplate: %s goes on with %s, was %d\n", plan.name.c_str(),
                 count_of_ranks(plan.ranks).c_str(), ranks_before);
}

void hint(const RunPlan& plan) {
  std::fprintf(stderr,
               "footplate: run %s in %s; from another terminal: footplate exec -r %s 'return status()'\n",
               plan.name.c_str(), plan.directory.c_str(), plan.name.c_str());
}

/// Where the supervisor is: in this process, or in a session of its own, with this process as its first
/// client.
enum class Mode { foreground, background, attached };

Mode mode_of(const RunOptions& options) {
  if (options.detach) return Mode::background;
  const bool at_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  return at_terminal && !options.batch ? Mode::attached : Mode::foreground;
}

/// The prompt of a run whose supervisor was just started; its lines until there is one.
Result<int> attach_to_new(const RunPlan& plan, pid_t supervisor, std::uintmax_t lines_before) {
  const auto lines = std::make_shared<FileTail>(batch_log(plan.directory), lines_before);
  RunRecord record;
  record.directory = plan.directory;
  Attachment::Options options;
  options.startup_lines = [lines] { return lines->lines(); };
  options.startup_ended = [supervisor] { return ::waitpid(supervisor, nullptr, WNOHANG) != 0; };
  std::fprintf(stdout, "run %s in %s\n", plan.name.c_str(), plan.directory.c_str());
  std::fflush(stdout);
  return attach_to(record, std::move(options));
}

/// What this process does once the supervisor is another one.
Result<int> beside(const RunPlan& plan, pid_t supervisor, Mode mode, std::optional<Signals>& signals,
                   std::uintmax_t lines_before) {
  if (mode == Mode::attached) {
    signals.reset();
    return attach_to_new(plan, supervisor, lines_before);
  }
  const int code = wait_for_first_step(plan, supervisor, *signals);
  if (code == 0) std::puts(plan.name.c_str());
  return code;
}

Result<int> run(const RunOptions& options) {
  std::optional<Signals> signals(std::in_place);  // before anything is made that a signal would leave behind
  if (auto good = check_options(options); !good) return tl::unexpected(good.error());
  leave_outer_run();
  auto settings = settings_of(options);
  if (!settings) return tl::unexpected(settings.error());
  const auto scripts = scripts_of(options, *settings);
  if (!scripts) return tl::unexpected(scripts.error());
  auto plan = plan_of(options, *settings);
  if (!plan) return tl::unexpected(plan.error());
  auto directory = take_directory(options);
  if (!directory) return tl::unexpected(directory.error());
  auto logs = options.resume == "auto" ? can_list_checkpoints(directory->path) : Result<void>();
  complete(*plan, options, *directory);
  if (logs) logs = make_logs(directory->path);
  if (logs)
    logs =
        keep_scripts(directory->path, *scripts, options.scripts, options.resume == "auto", is_batch(options));
  if (logs) logs = mark_repeated(*settings, directory->path, plan->start);
  if (!logs) {
    abandon_run_directory(*directory);
    return tl::unexpected(logs.error());
  }
  set_aside_result(directory->path, directory->last_start);  // only now: it tells how the run ended
  forget_refused_start(directory->path);
  sweep_abandoned_folders();
  add_to_index(directory->path);
  const Mode mode = mode_of(options);
  if (mode != Mode::foreground) {
    if (!signals->take().empty()) {  // while scripts were checked
      abandon_run_directory(*directory);
      return fail(ErrorKind::failed, "interrupted; nothing was started");
    }
    std::error_code ignored;
    const auto lines_before = fs::file_size(batch_log(directory->path), ignored);
    const auto supervisor = detach(launcher_log(directory->path));
    if (!supervisor) {
      abandon_run_directory(*directory);
      return tl::unexpected(supervisor.error());
    }
    if (*supervisor > 0) {
      ::close(directory->lock);
      return beside(*plan, *supervisor, mode, signals, lines_before);
    }
  } else if (!options.batch && ::isatty(STDOUT_FILENO) == 1) {
    hint(*plan);
  }
  Outlet out(mode == Mode::foreground ? STDOUT_FILENO : -1);
  return Supervisor(*std::move(plan), *std::move(settings), *directory, *signals, out).run();
}

/// What is wrong with a number of ranks; empty: nothing.
std::string why_no_rank_count(const std::string& text) {
  constexpr int kMost = 4096;
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 1 && count <= kMost) return {};
  return "takes how many ranks train, 1 to " + std::to_string(kMost) + ", as in -n 2; not '" + excerpt(text) +
         "'" + (text.starts_with('=') ? " (-n takes no '=')" : "");
}

/// The Slurm job that this process is in, with its end where that can be known.
std::optional<SlurmJob> job_of_process() {
  auto job = slurm_job(environment_of_process());
  if (!job) return job;
  if (const std::string why = ask_for_end(*job, std::time(nullptr)); !why.empty())
    std::fprintf(stderr, "footplate: %s\n", why.c_str());
  return job;
}

}  // namespace

Handler declare_run(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option(
      "CONFIG|KEY=VALUE", options->words,
      "configs (configs/kjv.lua, or kjv) and presets (large), merged from left to right, and single "
      "settings");
  command
      .add_option(
          "-n,--ranks", options->ranks,
          "number of ranks (one for each visible device, else 1; one for each slot of the hosts; with "
          "--resume auto, as many as were last asked for)")
      ->check(why_no_rank_count);
  auto* host = command.add_option("--host,--hosts", options->host,
                                  "the hosts of the ranks, this machine first: n1,n2:4, as for mpirun; with "
                                  "--resume auto, those of the last start");
  command.add_option("--hostfile", options->hostfile, "the same with the hosts of a file, as for mpirun")
      ->excludes(host);
  command
      .add_option("--spare", options->spare,
                  "so many of the hosts, the last ones, are spare: a start uses them in place of those that "
                  "don't answer, and a lost host is replaced so")
      ->check(CLI::Range(0, 4096));
  command.add_option("--name", options->name, "name of the run; left out: the config's with a number, kjv-3")
      ->check(why_no_run_name);
  auto* batch = command.add_flag("--batch", options->batch,
                                 "in the foreground, never reading stdin, a line per event; without it, on a "
                                 "terminal, the run's prompt");
  command.add_flag("-d,--detach", options->detach, "in the background; returns after the first step")
      ->excludes(batch);
  command.add_option("--resume", options->resume,
                     "auto: go on with the run of --name; or the path of a checkpoint");
  declare_scripts(command, options->scripts);
  command
      .add_option("--restarts", options->restarts,
                  "start again after so many failures; left out: in batch up to 3 times after a "
                  "crash, never after the same step twice, else never")
      ->check(CLI::Range(0, 1000));
  command.add_flag(
      "--requeue", options->requeue,
      "in a Slurm job: put it back into the queue where the run ends with code 75, and can go on");
  command.add_option(
      "--notify", options->notify,
      "a command of the shell, run at the end of the run, at a restart after a failure, at a pause and when "
      "ranks are lost, with FOOTPLATE_NOTIFY_TEXT, _EVENT, _RUN, …; the text is its stdin, too");
  return [options] {
    options->began = std::chrono::steady_clock::now();
    options->job = job_of_process();
    return run(*options);
  };
}

}  // namespace footplate
