#include "runtime/rank/rank.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/exit_codes.h"
#include "protocol/host_name.h"
#include "protocol/iso_time.h"
#include "protocol/layout.h"
#include "protocol/overloaded.h"
#include "protocol/run_end.h"
#include "protocol/user_name.h"
#include "run_files/file_names.h"
#include "run_files/journaled_orders.h"
#include "runtime/base/deadline_timer.h"
#include "runtime/base/fault.h"
#include "runtime/base/library_variables.h"
#include "runtime/base/step_file.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/faulty_disks.h"
#include "runtime/checkpoint/load_handler.h"
#include "runtime/checkpoint/resumed_settings.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/comm/agree.h"
#include "runtime/comm/checked_communicator.h"
#include "runtime/comm/mpi/invitation.h"
#include "runtime/comm/mpi/mpi_channel.h"
#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/control/control.h"
#include "runtime/control/control_channel.h"
#include "runtime/cuda/data_plane.h"
#include "runtime/cuda/nccl_guard.h"
#include "runtime/orders/handler_table.h"
#include "runtime/rank/arrival_note.h"
#include "runtime/rank/endings.h"
#include "runtime/rank/failed_device.h"
#include "runtime/rank/host_folders.h"
#include "runtime/rank/joining_command.h"
#include "runtime/rank/rank_table.h"
#include "runtime/rank/several_hosts.h"
#include "runtime/rank/start_faults.h"
#include "runtime/rank/start_state.h"
#include "runtime/rank/start_up.h"
#include "runtime/rank/stop_signals.h"
#include "runtime/rank/versions.h"
#include "runtime/records/metric_fan_out.h"
#include "runtime/records/rank_records.h"
#include "runtime/schema/schema_table.h"
#include "runtime/train/faulty_training.h"
#include "runtime/train/schedule.h"
#include "runtime/train/trainer.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// A rank's end waits so long for its control thread to record what happened; a disk may hold that up.
constexpr std::chrono::milliseconds kSettle{1000};
/// For a joining rank, from its welcome until all ranks have let it in; it takes milliseconds.
constexpr std::chrono::milliseconds kJoinTakes{20000};

/// One rank, put together in the order in which its parts need each other.
class Rank {
 public:
  Rank(const RankOptions& options, std::vector<std::string> variables, HostFolders folders)
      : options_(options), variables_(std::move(variables)), folders_(std::move(folders)) {}

  int run() {
    if (options_.joins >= 0) return run_as_guest();
    if (auto started = start(); !started) return refuse(started.error());
    if (auto built = build(); !built) return refuse(built.error());
    return train();
  }

 private:
  // --- start: MPI, settings, records ---

  Result<void> start() {
    install_signal_handlers();
    arrival_.is_at("before MPI starts");
    inject_start_fault(MpiSession::launched_rank(), /*has_mpi=*/false);
    arrival_.waits_in("MPI's start");
    auto session = MpiSession::start(-1, options_.host_groups);
    if (!session) return tl::unexpected(session.error());
    session_ = *std::move(session);
    arrival_.has_met();
    arrival_.is_at("after MPI's start");
    inject_start_fault(session_->rank(), /*has_mpi=*/true);
    delay_start(session_->rank());
    communicator_ = std::make_unique<MpiCommunicator>(*session_, ledger_, progress_);
    arrival_.waits_in("the exchange of process ids");
    if (auto gathered = gather_pids(); !gathered) return gathered;
    arrival_.is_at("reading its configuration");
    meeting_.emplace(*communicator_, arrival_);
    return meeting_->agree(check_shared(options_.run_directory, folders_)
                               .and_then([] { return check_faults(); })
                               .and_then([this] { return read_configuration(start_, options_); }));
  }

  Result<void> gather_pids() {
    std::int64_t mine = getpid();
    std::vector<std::int64_t> all(static_cast<std::size_t>(session_->world_size()));
    auto gathered =
        communicator_
            ->all_gather({&mine, 1, DataType::int64},
                         {all.data(), static_cast<std::int64_t>(all.size()), DataType::int64}, "process ids")
            ->wait();
    for (std::size_t rank = 0; rank < all.size(); ++rank) pids_[static_cast<int>(rank)] = all[rank];
    return gathered;
  }

  // --- build: records, resume, trainer, control ---

  Result<void> build() {
    const auto started = from_rank(*communicator_, 0, iso_time(std::chrono::system_clock::now()));
    if (!started) return tl::unexpected(started.error());
    start_.started = *started;  // the same text on all: whoever is rank 0 later goes on with one record
    arrival_.is_at("opening its logs");
    auto records =
        RankRecords::open(options_.run_directory, session_->rank(), options_.start, start_.settings);
    if (auto opened = meeting_->agree(records ? Result<void>() : tl::unexpected(records.error())); !opened)
      return opened;
    records_ = *std::move(records);
    log_variables();
    watch_for_other_hosts();
    if (auto chosen = choose_origin(start_, options_, *meeting_, *records_); !chosen) return chosen;
    if (auto taken = take_over_checkpoint(start_, options_, *meeting_, *records_); !taken) return taken;
    if (auto made = make_trainer(); !made) return made;
    const std::string& checkpoint = start_.origin.checkpoint;
    if (!checkpoint.empty()) arrival_.is_at("loading the checkpoint");
    if (!checkpoint.empty())
      if (auto loaded = trainer_->load(checkpoint); !loaded)
        return tl::unexpected(explain_misfit(loaded.error(), start_.of_model));
    if (auto same = meeting_->meet([this] { return trainer_->check_state(); }); !same) return same;
    if (auto end = find_end(); !end) return end;
    if (auto read = read_orders(start_, options_, *meeting_, *records_, trainer_->step()); !read) return read;
    start_control();
    if (session_->rank() == 0) records_->started(start_record(), rank_table(*session_, pids_));
    records_->best(progress_.best_evaluation());
    if (start_.origin.opens_branch) open_branch();
    return {};
  }

  /// Where train.epochs says when that is: the same on all ranks, which have the same data.
  Result<void> find_end() {
    const auto steps = trainer_->take_end_of_epochs();
    if (!steps) return tl::unexpected(steps.error());
    if (!*steps) return {};
    start_.settings.set("train.steps", **steps, kOfEpochs);
    records_->set_steps(**steps);
    if (session_->rank() == 0)
      records_->info(fmt::format("train.epochs = {}: the run has {} steps of {} samples",
                                 start_.settings.integer("train.epochs"), **steps,
                                 start_.settings.integer("train.batch_size")));
    return {};
  }

  /// With a checkpoint of its own a branch is what --resume auto goes on with from here on.
  void open_branch() {
    arrival_.is_at("saving the first checkpoint of a branch");
    if (const auto saved = trainer_->save(""); !saved && session_->rank() == 0)
      records_->warn("branch " + start_.origin.branch + " has no checkpoint yet: " + saved.error().message);
  }

  void watch_for_other_hosts() {
    hosts_ = SeveralHosts::of({*session_, folders_, *records_, options_.run_directory, options_.start,
                               start_.record.launcher_host, start_.settings.number("comm.host_timeout_s"),
                               [this](const std::string& reason) { give_up_recovery(reason); }});
  }

  void log_variables() {
    for (const std::string& line : variables_) records_->info(line);
  }

  /// Before the trainer. A joining rank connects with the others, once it is let in.
  Result<void> open_data_plane() {
    arrival_.is_at("opening its device and NCCL's library");
    auto opened = Compute::open(start_.settings, *session_, *communicator_, options_.run_directory);
    const auto mine = opened ? Result<void>() : tl::unexpected(opened.error());
    if (opened) compute_ = *std::move(opened);
    if (options_.joins >= 0) return mine;
    if (auto agreed = meeting_->agree(mine); !agreed) return agreed;
    if (auto same = compute_.is_alike(*communicator_); !same || compute_.plane == nullptr) return same;
    records_->info(compute_.plane->description());
    arrival_.waits_in("the making of NCCL's communicators");
    return compute_.plane->connect();
  }

  Result<void> make_trainer() {
    if (auto opened = open_data_plane(); !opened) return opened;
    check_communicators();
    SaverOptions saver;
    saver.ranks = &*checked_;
    saver.run_directory = options_.run_directory;
    saver.run_id = start_.record.id;
    saver.start = options_.start;
    saver.rank = session_->rank();
    saver.world_size = session_->world_size();
    saver.branch = start_.origin.branch;
    saver.origin = start_.origin.checkpoint;
    saver.best = [this] { return progress_.best_evaluation(); };
    saver.last_order = [this] {
      const std::uint64_t applied = control_->gate().last_applied();  // not the largest: see orders_ahead.h
      return applied != 0 ? applied : start_.last_order;
    };
    saver.store = [this] { return control_->gate().store(); };
    saver.orders = [this] { return control_->gate().orders_ahead(); };
    saver.metrics = [this] { return records_->last_evaluation().values; };
    saver.warn = [this](const std::string& text) { records_->warn(text); };
    saver.log = [this](const std::string& text) { records_->info(text); };
    saver.before_commit = [this] { return hosts_ ? hosts_->check() : void(); };
    saver.retries = kFourTries;
    if (fault("save_no_copy", saver.rank)) saver.memory_left = [] { return 0; };
    saver.wrote = [this](double share) { progress_.wrote(share); };
    disk_ = open_disk(session_->rank());
    saver_ = std::make_unique<CheckpointSaver>(std::move(saver), *disk_);
    if (session_->rank() == 0 && options_.joins < 0)
      for (const std::string& line : saver_->remove_leftovers()) records_->info(line);

    metrics_.add([this](const Json& line) { records_->write(line); });
    metrics_.keep_with([this](const Json& line) { records_->keep(line); });
    metrics_.add([this](const Json& line) { control_->gate().publish(LoggedMetrics{line}); });
    TrainerOptions trainer{.settings = start_.settings,
                           .communicator = *checked_,
                           .progress = progress_,
                           .local_ranks = session_->local_size(),
                           .saver = saver_.get(),
                           .sink = &metrics_,
                           .log = [this](const std::string& text) { records_->info(text); },
                           .device = compute_.device.get(),
                           .gradients = checked_gradients_ ? &*checked_gradients_ : nullptr,
                           .before_step = [this](std::int64_t step) { return guard_->before_step(step); },
                           .branch = start_.origin.branch,
                           .folder = options_.run_directory.string(),
                           .joins = options_.joins >= 0,
                           .ledger = &ledger_};
    arrival_.is_at("building the model");
    faulty_training_.emplace(session_->rank());
    auto made = Trainer::create(faulty_training_->around(trainer));
    if (auto agreed = meeting_->agree(made ? Result<void>() : tl::unexpected(made.error())); !agreed)
      return agreed;
    trainer_ = *std::move(made);
    return trainer_->check_corpus(options_.corpus);
  }

  /// For debug.collectives, which is off at first.
  void check_communicators() {
    const auto hash_in = [](StateMemory* memory) {
      return [memory, room = std::vector<std::byte>()](const Buffer& buffer) mutable {
        StateEntry entry{.name = "", .type = buffer.type, .shape = {buffer.elements}, .data = buffer.data};
        entry.bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.type);
        entry.memory = memory;
        return entry.hash(room);
      };
    };
    checked_.emplace(*communicator_, *communicator_, progress_, hash_in(nullptr));
    if (compute_.plane)
      checked_gradients_.emplace(compute_.plane->communicator(), *communicator_, progress_,
                                 hash_in(compute_.device ? compute_.device->state_memory() : nullptr));
  }

  void start_control() {
    if (const fs::path& folder = folders_.folder(); session_->rank() == 0 && !folder.empty())
      if ((step_file_ = StepFile::make(folder, trainer_->step()))) progress_.mirror(step_file_->step());
    make_world();
    make_control({});
  }

  void make_world() {
    channel_ = make_control_channel(make_mpi_channel(*session_, folders_.folder()), start_.settings);
    world_ = std::make_unique<MpiWorld>(*session_, *communicator_, *channel_);
    world_->set_invitation(joining_command(options_, start_.origin, trainer_->corpus_hash()), start_limit());
    if (hosts_) hosts_->watch();
  }

  std::chrono::milliseconds start_limit() const {
    return std::chrono::milliseconds(std::llround(start_.settings.number("comm.init_timeout_s") * 1000));
  }

  void make_control(std::optional<Welcome> welcome) {
    world_size_ = session_->world_size();
    ControlOptions control;
    control.welcome = std::move(welcome);
    control.schema = start_.schema;
    control.settings = start_.settings;
    control.settings.set("optim.lr", trainer_->learning_rate(), kComputed);
    control.channel = channel_.get();
    if (session_->world_size() > 1) control.world = world_.get();
    control.newest_checkpoint = newest_checkpoint(start_.origin, options_.run_directory);
    control.why_lost = why_ranks_were_lost(options_, hosts_);
    control.on_world = [this](const Membership& members, bool leads) { return enter_world(members, leads); };
    control.give_up = [this](const std::string& reason) { give_up_recovery(reason); };
    control.progress = &progress_;
    control.ledger = &ledger_;
    control.run = {start_.record.name, start_.record.id, options_.run_directory, start_.record.socket,
                   hostname(),         user_name(),      start_.started,         start_.origin.branch,
                   options_.left,      trainer_->step()};
    control.observer = [this](const Observed& observed) {
      std::visit(
          Overloaded{[this](const EventData& event) {
                       records_->observe(event);
                       if (topic_of(event) == Topic::eval) records_->best(progress_.best_evaluation());
                     },
                     [this](const OrderApplied& applied) { records_->applied(applied); },
                     [this](const ConsoleStarted& console) { records_->console_started(console.pid); }},
          observed);
    };
    control.before_exit = [this] { records_->flush(); };
    if (options_.console) control.console_program = find_part(Part::console, own_folder());
    control.first_order_id = 1 + std::max({start_.last_order, start_.ahead.last_id,
                                           last_journaled_order(options_.run_directory / kJournalFile)});
    control.ahead = std::move(start_.ahead.orders);
    control.process_start = process_start_;
    control.store = start_.store;
    control.recoveries = [this] { return recoveries_.load(); };
    control_ = std::make_unique<Control>(std::move(control));
    const auto tell = [this](EventData event) { publish(std::move(event)); };
    guard_ = std::make_unique<NcclGuard>(start_.settings, compute_.plane.get(), tell, options_.joins >= 0);
    load_handler_ = std::make_unique<LoadHandler>(LoadHandler::Parts{
        start_.schema, start_.configured, options_.start, start_.settings, options_.run_directory,
        start_.origin.branch, *checked_, progress_, tell, [this] { return trainer_->finish_saves(); }});
    handlers_ = HandlerTable({load_handler_.get(), guard_.get(), trainer_.get()});
    control_->set_steerable(handlers_);
  }

  void publish(EventData event) {
    // Printed once: on rank 0 as the event that it becomes.
    if (const auto* warning = std::get_if<Warning>(&event)) records_->log_warning(warning->text);
    if (session_->rank() == 0) control_->gate().publish(std::move(event));
  }

  /// Where `footplate run` sees what this rank says of its start.
  fs::path notes_folder() const {
    if (options_.joins >= 0) return {};
    if (!folders_.are_remote()) return folders_.folder();
    const fs::path shared = options_.run_directory / kStartNotesFolder;
    ::mkdir(shared.c_str(), 0700);  // one of them makes it
    return shared;
  }

  std::string hostname() const { return session_->hosts()[static_cast<std::size_t>(session_->rank())]; }

  StartRecord start_record() const {
    Json libraries = versions();
    libraries["nccl"] = compute_.nccl_version();
    return {.start = options_.start,
            .time = start_.started,
            .versions = std::move(libraries),
            .hosts = session_->hosts(),
            .world_size = session_->world_size(),
            .step = trainer_->step(),
            .resumed = start_.origin.checkpoint,
            .journal = start_.last_order,
            .given = start_.given,
            .branch = start_.origin.branch,
            .loaded = !options_.branch.empty()};
  }

  // --- this process joins a run: rank 0 has spawned it (runtime/comm/mpi/invitation.h) ---

  int run_as_guest() {
    if (auto joined = join(); !joined) leave_before_joining(options_.joins, joined.error().message);
    return train();
  }

  /// Everything that takes time comes before the welcome: the ranks wait from then on.
  Result<void> join() {
    install_signal_handlers();
    start_.origin = {options_.resume, options_.branch};
    inject_start_fault(options_.joins, /*has_mpi=*/false);
    auto session = MpiSession::start(options_.joins, options_.host_groups);
    if (!session) return tl::unexpected(session.error());
    session_ = *std::move(session);
    inject_start_fault(options_.joins, /*has_mpi=*/true);
    communicator_ = std::make_unique<MpiCommunicator>(*session_, ledger_, progress_);
    meeting_.emplace(*communicator_, arrival_);
    if (auto read = read_configuration(start_, options_); !read) return read;
    const auto at_most = start_limit();
    const auto settings = await_greeting(session_->host(), at_most).and_then([this](const std::string& text) {
      return Settings::from_json(Json::parse(text), start_.schema);
    });
    if (!settings) return tl::unexpected(settings.error());
    start_.settings = *settings;
    auto records = RankRecords::open(options_.run_directory, options_.joins, options_.start, start_.settings);
    if (!records) return tl::unexpected(records.error());
    records_ = *std::move(records);
    log_variables();
    if (auto made = make_trainer(); !made) return made;
    make_world();
    const auto welcome = await_welcome(session_->host(), at_most);
    if (!welcome) return tl::unexpected(welcome.error());
    return welcome_from_text(*welcome).and_then([this](Welcome told) { return enter(std::move(told)); });
  }

  Result<void> enter(Welcome welcome) {
    const DeadlineTimer bound(
        kJoinTakes, [this] { leave_before_joining(options_.joins, "the ranks didn't let it in after all"); });
    auto settings = Settings::from_json(welcome.settings, start_.schema);
    if (!settings) return tl::unexpected(settings.error());
    start_.settings = *std::move(settings);
    start_.store = welcome.store;
    start_.started = welcome.started;
    recoveries_ = welcome.recoveries;
    process_start_ = welcome.run_start();
    if (auto joined = world_->join(); !joined) return joined;
    trainer_->settings_changed(start_.settings, 0);
    ledger_.restart(0, 0);  // what it has done alone is compared with nobody's
    make_control(std::move(welcome));
    return {};
  }

  // --- a rank was lost, or joins ---

  /// Control thread; training stands, or is about to: this rank's number is another, and perhaps rank 0's
  /// work its own.
  std::set<std::uint64_t> enter_world(const Membership& members, bool leads) {
    for (const auto& [origin, pid] : session_->pids()) pids_[origin] = pid;
    if (!is_member_.exchange(true)) {
      records_->info(fmt::format("joins the run as rank {} of {}", members.rank, members.world_size()));
      watch_for_other_hosts();  // rank 0 has claimed the term of this world
      if (hosts_) hosts_->watch(world_->take_bells());
      return {};
    }
    const int before = std::exchange(world_size_, members.world_size());
    const bool grown = members.world_size() > before;
    if (!grown) ++recoveries_;
    records_->info(fmt::format("{}: this one is rank {} of {} now (log/rank-{}.log goes on)",
                               grown                            ? "a rank has joined"
                               : members.world_size() == before ? "communicators were rebuilt"
                                                                : "a rank was lost",
                               members.rank, members.world_size(),
                               members.origins[static_cast<std::size_t>(members.rank)]));
    if (hosts_) hosts_->enter_world(world_->take_bells());
    if (members.rank != 0) return {};
    std::set<std::uint64_t> recorded;
    if (leads) {
      if (auto taken = records_->take_over(); !taken) records_->warn(taken.error().message);
      if (const fs::path& folder = folders_.folder(); !folder.empty())
        if ((step_file_ = StepFile::make(folder, progress_.step()))) progress_.mirror(step_file_->step());
      recorded = journaled_orders(options_.run_directory / kJournalFile);
    }
    records_->world(rank_table(*session_, pids_), hostname());
    return recorded;
  }

  /// Any thread; the others may hang. What is on the disk is whole: the newest checkpoint is what is left.
  [[noreturn]] void give_up_recovery(const std::string& reason) {
    if (!is_member_) leave_before_joining(options_.joins, reason);
    std::fprintf(stderr, "footplate: rank %d: %s\n", session_->rank(), reason.c_str());
    // Which checkpoint is the newest one is the training thread's to know; `footplate run` looks.
    RunResult result;
    result.code = static_cast<int>(ExitCode::resumable);
    result.reason = reason;
    result.step = progress_.step();
    result.restarts = options_.start - 1;
    result.recoveries = recoveries_.load();
    if (hosts_) hosts_->check();
    write_result_if_missing(options_.run_directory, result);
    if (hosts_) hosts_->end_daemon_if_orphaned();
    std::_Exit(static_cast<int>(ExitCode::resumable));
  }

  // --- train, and end ---

  int train() {
    control_->start();
    let_signals_reach(*control_);
    const auto ending = trainer_->run(control_->gate());
    const bool lost = !ending && has_lost_device(*trainer_, checked_->rank(), options_, *records_);
    if (lost && checked_->world_size() > 1) leave_alone();
    control_->training_ended();
    RunResult result = result_of(*trainer_, ending, options_.start, recoveries_, records_->last_evaluation());
    result.full_eval_loss = records_->full_loss();
    if (lost) result.code = static_cast<int>(ExitCode::resumable);
    control_->settle(kSettle);  // the last checkpoint is told of before the end
    if (hosts_) hosts_->check();
    if (session_->rank() == 0) records_->ended(result);
    if (!ending && !trainer_->failed_together()) give_up(ending.error(), result);
    control_->finish(result);
    leave(result.code);
    return result.code;
  }

  /// An error that the other ranks don't know of: they may wait for this one in a collective, for ever.
  [[noreturn]] void give_up(const Error& error, const RunResult& result) {
    records_->warn("ending all ranks: " + error.message);
    const std::string who = fmt::format("rank {}: ", session_->rank());
    const bool named = error.message.starts_with(who);
    std::fprintf(stderr, "footplate: %s%s\n", named ? "" : who.c_str(), error.message.c_str());
    let_no_signal_reach_control();
    records_->flush();  // not destroyed: control's thread may be using them
    // Rank 0 may be the one that was lost, or be ended by the abort before it has written.
    write_result_if_missing(options_.run_directory, result);
    MpiSession::abort(result.code);
  }

  /// An error before the first step, the same on all ranks: rank 0 says it once.
  int refuse(const Error& error) {
    const RunResult refusal = refusal_of(error, options_.start);
    if (hosts_) hosts_->check();
    if (!session_ || session_->rank() == 0) {
      std::fprintf(stderr, "footplate: %s\n", error.message.c_str());
      if (const auto written = write_result(options_.run_directory, refusal); !written)
        std::fprintf(stderr, "footplate: %s\n", written.error().message.c_str());
    }
    leave(refusal.code);
    return refusal.code;
  }

  /// Everything that uses MPI ends before MPI does.
  void leave(int code) {
    let_no_signal_reach_control();
    if (hosts_) hosts_->end_daemon_if_orphaned();
    control_.reset();
    load_handler_.reset();
    guard_.reset();
    trainer_.reset();
    compute_.reset();
    communicator_.reset();
    world_.reset();
    channel_.reset();
    hosts_.reset();
    records_.reset();
    if (!session_ || session_->finish()) return;
    std::fflush(nullptr);
    std::_Exit(code);
  }

  RankOptions options_;
  const std::vector<std::string> variables_;  ///< lines for the log
  const HostFolders folders_;
  std::chrono::steady_clock::time_point process_start_ = std::chrono::steady_clock::now() - options_.ran;
  StartState start_;

  std::map<int, std::int64_t> pids_;                 ///< by origin
  int world_size_ = 1;                               ///< control thread: before the newest change
  std::atomic<bool> is_member_{options_.joins < 0};  ///< a joining rank isn't before it is let in
  std::atomic<int> recoveries_{0};                   ///< written by the control thread

  ArrivalNote arrival_{notes_folder(), MpiSession::launched_rank()};
  Ledger ledger_;
  Progress progress_;
  std::unique_ptr<StepFile> step_file_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<MpiSession> session_;
  std::unique_ptr<RankRecords> records_;
  std::unique_ptr<SeveralHosts> hosts_;  ///< null: all ranks are on one
  MetricFanOut metrics_;
  std::unique_ptr<MpiCommunicator> communicator_;
  std::optional<StartMeeting> meeting_;
  std::unique_ptr<MessageChannel> channel_;
  std::unique_ptr<MpiWorld> world_;
  Compute compute_;
  std::optional<CheckedCommunicator> checked_, checked_gradients_;
  std::unique_ptr<CheckpointSaver> saver_;
  std::optional<FaultyTraining> faulty_training_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<NcclGuard> guard_;
  std::unique_ptr<LoadHandler> load_handler_;
  HandlerTable handlers_;
  std::unique_ptr<Control> control_;
};

}  // namespace

int run_rank(const RankOptions& options) {
  try {
    // First of all: there are no other threads yet.
    auto folders = HostFolders::open();
    if (!folders) {
      std::fprintf(stderr, "footplate: host %s: %s\n", host_name().c_str(), folders.error().message.c_str());
      return static_cast<int>(ExitCode::failed);
    }
    return Rank(options, set_library_variables(runtime_schema(), options.run_directory, options.start),
                *std::move(folders))
        .run();
  } catch (const std::exception& error) {
    // Nothing is known of the other ranks here, so nothing collective is left to do.
    std::fprintf(stderr, "footplate: rank ended by an unexpected error: %s\n", error.what());
    MpiSession::abort(static_cast<int>(ExitCode::failed));
  }
}

}  // namespace footplate
