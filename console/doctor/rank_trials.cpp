#include "console/doctor/rank_trials.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>

#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/launch/run_dir/run_directory.h"
#include "console/launch/start/child.h"
#include "console/launch/start/file_tail.h"
#include "console/launch/start/plan.h"
#include "run_files/file_names.h"
#include "run_files/line_files.h"
#include "run_files/result_file.h"

extern char** environ;

namespace footplate {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

// Far more than any of them takes on a machine that works.
constexpr auto kAnswerTakes = 120s;
constexpr auto kLargeTakes = 900s;
constexpr auto kRunTakes = 180s;
constexpr auto kLook = 50ms;
constexpr auto kStragglersTake = 3s;
constexpr auto kRunClearsUp = 20s;
constexpr std::int64_t kLarge = 50'000'000;  ///< elements from which on a reduction may take its time
constexpr std::int64_t kTelling =
    1'000'000;  ///< elements from which on a rate says something: below it is delay
constexpr double kLeastLocalBandwidth = 0.02;  ///< GB/s; two ranks of one machine do a hundred times that
constexpr double kWorthChanging = 0.9;         ///< of MKL's time
constexpr std::int64_t kRanksOfReduction = 2;
constexpr std::int64_t kSpareMemory = std::int64_t{1}
                                      << 30;  ///< the programs themselves, and others on this machine
constexpr int kSteps = 20;
constexpr std::size_t kShownLines = 3;

/// Every evaluation of it fails (FOOTPLATE_FAULT below), three of them.
constexpr const char* kConfig = R"(run.task = "synthetic"
run.device = "cpu"
model.step_ms = 1
train.steps = 20
train.batch_size = 8
sched.warmup_steps = 0
eval.every = 5
eval.at_end = false
ckpt.every = 0
log.every = 5
comm.init_timeout_s = 60
)";

/// One line of what may be several.
std::string in_one_line(const std::string& text) {
  std::istringstream stream(text);
  std::string joined;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) joined += (joined.empty() ? "" : " | ") + line;
  return joined;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& variable : set) replaced = replaced || variable.first == name;
    if (!replaced) list.push_back(text);
  }
  for (const auto& [name, value] : set) list.push_back(name + "=" + value);
  return list;
}

/// Lines of a run's metrics that record a failed evaluation.
int failed_evaluations(const fs::path& run_directory) {
  int failed = 0;
  read_metrics_lines(run_directory, [&](const MetricsLine& line) {
    if (line.metrics.number("eval/evaluation_failed") == 1) ++failed;
  });
  return failed;
}

/// GB/s.
double rate_of(const ReductionAnswer& answer) {
  return static_cast<double>(answer.elements) * sizeof(float) / 1e9 / answer.seconds;
}

void say_goodbye(Subprocess& child, std::chrono::seconds at_most) {
  const auto deadline = steady_clock::now() + at_most;
  while (!child.ended() && steady_clock::now() < deadline)
    ::poll(nullptr, 0, static_cast<int>(kLook.count()));
}

}  // namespace

std::int64_t memory_of_reduction(std::int64_t elements) {
  return kRanksOfReduction * elements * static_cast<std::int64_t>(sizeof(float)) + kSpareMemory;
}

std::int64_t largest_reduction(std::int64_t memory) {
  constexpr std::int64_t kMillion = 1'000'000;
  const std::int64_t elements =
      (memory - kSpareMemory) / (kRanksOfReduction * static_cast<std::int64_t>(sizeof(float)));
  return std::max<std::int64_t>(0, elements / kMillion * kMillion);
}

Result<Trials> Trials::prepare(fs::path program_folder, Signals& signals) {
  const auto id = new_run_id();
  if (!id) return tl::unexpected(id.error());
  sweep_abandoned_folders();
  PrivateFolders folders = PrivateFolders::of(*id);
  const auto lock = folders.create();
  if (!lock) return tl::unexpected(lock.error());
  return Trials(std::move(program_folder), signals, std::move(folders), *lock);
}

Trials::Trials(fs::path program_folder, Signals& signals, PrivateFolders folders, int lock)
    : program_folder_(std::move(program_folder)),
      signals_(signals),
      folders_(std::move(folders)),
      lock_(lock) {}

Trials::Trials(Trials&& other) noexcept
    : program_folder_(std::move(other.program_folder_)),
      signals_(other.signals_),
      folders_(std::move(other.folders_)),
      network_(std::move(other.network_)),
      ports_(other.ports_),
      lock_(std::exchange(other.lock_, -1)),
      interrupted_(other.interrupted_) {}

Trials::~Trials() {
  if (lock_ < 0) return;
  end_stragglers(folders_, kStragglersTake);
  folders_.remove();
  ::close(lock_);
}

Result<int> Trials::run_to_end(const Command& command, std::chrono::seconds at_most) {
  auto child = start_child(command, out(), err());
  if (!child) return tl::unexpected(child.error());
  const auto deadline = steady_clock::now() + at_most;
  while (!child->ended() && interrupted_ == 0 && steady_clock::now() < deadline) {
    pollfd ready{signals_.fd(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(kLook.count()));
    for (const int number : signals_.take()) interrupted_ = number;
  }
  const bool in_time = child->ended();
  // `footplate run` kills its ranks and clears up after itself.
  if (!in_time && std::filesystem::path(command.arguments.front()).filename() == "footplate") {
    child->signal(SIGQUIT);
    say_goodbye(*child, kRunClearsUp);
  }
  end_launched(child->pid());
  say_goodbye(*child, kRunClearsUp);
  if (interrupted_ != 0)
    return fail(ErrorKind::failed, std::string("interrupted by ") + signal_name(interrupted_));
  if (!in_time)
    return fail(ErrorKind::timed_out,
                "no answer within " + std::to_string(at_most.count()) + " s: " + last_output());
  const int status = child->wait_status();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Trials::last_output() const {
  const std::string text = in_one_line(printable(last_lines(err(), kShownLines)));
  return text.empty() ? "nothing was said" : text;
}

Result<Json> Trials::answer_of_ranks(int ranks, const std::vector<std::string>& arguments,
                                     std::chrono::seconds at_most, const std::vector<Host>& hosts) {
  folders_.clear();
  Placement placement{
      .hosts = hosts, .network = network_, .ports = ports_, .has_private_folders = hosts.empty()};
  for (Host& host : placement.hosts) host.slots = 1;
  const auto command = launch_command(program_folder_, ranks, arguments, folders_, placement);
  if (!command) return tl::unexpected(command.error());
  const auto code = run_to_end(*command, at_most);
  if (!code) return tl::unexpected(code.error());
  end_stragglers(folders_, 0ms);
  std::ifstream file(out());
  for (std::string line; std::getline(file, line);)
    if (auto answer = parse_line(line); answer && answer->is_object()) return *std::move(answer);
  return fail(ErrorKind::failed, "ended with code " + std::to_string(*code) + ": " + last_output());
}

void Trials::speak_over(std::string network, std::optional<PortRange> ports) {
  network_ = std::move(network);
  ports_ = ports;
}

Result<LibrariesAnswer> Trials::libraries() {
  return ask_ranks<LibrariesAnswer>(1, {"--doctor", "versions"}, kAnswerTakes);
}

Check Trials::products() {
  Check check{.name = "products"};
  const auto answer = ask_ranks<ProductsAnswer>(1, {"--doctor", "products"}, kAnswerTakes);
  if (!answer)
    return to_mend(
        check, "footplate-rank multiplies no matrices: " + answer.error().message,
        "run.blas = \"mkl\" needs nothing but LibTorch; scripts/deps installs the one that is tested");
  check.values = answer->all;
  if (!answer->missing.empty()) {
    check.found = "MKL multiplies float32 matrices; OpenBLAS isn't here to compare with";
    return check;
  }
  const std::string right = answer->ratio < kWorthChanging ? "openblas" : "mkl";
  check.found = answer->openblas + " takes " + rounded(answer->ratio, 3) +
                " of MKL's time for float32 matrices: " +
                (right == answer->automatic
                     ? "run.blas = \"auto\" takes the right one, " + right
                     : "run.blas = \"" + right + "\" is right; \"auto\" takes " + answer->automatic);
  return check;
}

Check Trials::fault_tolerance() {
  Check check{.name = "fault tolerance"};
  const auto answer = ask_ranks<LossAnswer>(2, {"--doctor", "loss"}, kAnswerTakes);
  if (!answer)
    return to_mend(
        check, "two ranks under mpirun, one of them killed: " + answer.error().message,
        "scripts/deps installs Open MPI with fault tolerance (ULFM); FOOTPLATE_MPIRUN names another mpirun");
  check.values = answer->all;
  check.found = "mpirun starts ranks; a killed one was noticed after " + rounded(answer->noticed_ms, 2) +
                " ms, and the other went on without it";
  if (answer->survivors == 1) return check;
  return to_mend(check, "of two ranks, one of them killed, " + std::to_string(answer->survivors) + " went on",
                 "scripts/deps installs Open MPI with fault tolerance (ULFM)");
}

Check Trials::reduction(const std::string& name, std::int64_t elements) {
  Check check{.name = name};
  const auto answer =
      ask_ranks<ReductionAnswer>(2, {"--doctor", "reduce", "--elements", std::to_string(elements)},
                                 elements >= kLarge ? kLargeTakes : kAnswerTakes);
  if (!answer)
    return to_mend(check, "no all-reduce between two ranks: " + answer.error().message,
                   "footplate run with -n 1 needs no MPI; scripts/deps installs the one that is tested");
  check = judge_reduction(std::move(check), *answer, "2 ranks");
  if (elements >= kTelling && rate_of(*answer) < kLeastLocalBandwidth && check.verdict == Verdict::good)
    return to_mend(check, check.found + ", which is very slow",
                   "end what else uses the cores (top), and see shared memory above");
  return check;
}

Check Trials::judge_reduction(Check check, const ReductionAnswer& answer, const std::string& between) const {
  check.values = answer.all;
  check.values["gb_per_s"] = rate_of(answer);
  check.found = elements_text(answer.elements) + " between " + between + ": " + rounded(rate_of(answer), 3) +
                " GB/s (" + rounded(answer.seconds * 1000, 3) + " ms)";
  if (answer.wrong != 0)
    return to_mend(check, check.found + ", and " + std::to_string(answer.wrong) + " sums are wrong",
                   "don't train on this machine: test its memory (memtest86+), and another MPI");
  return check;
}

Check Trials::evaluation() {
  Check check{.name = "evaluation"};
  folders_.clear();
  const fs::path config = folders_.temporary / "doctor.lua";
  std::ofstream(config) << kConfig;
  Command command;
  std::error_code ignored;
  command.arguments = {fs::read_symlink("/proc/self/exe", ignored).string(),
                       "run",
                       config.string(),
                       "--batch",
                       "-n",
                       "2",
                       "--name",
                       "doctor"};
  const fs::path runs = folders_.temporary / "runs";
  command.environment = environment_with({{"FOOTPLATE_RUNS", runs.string()},
                                          {"XDG_STATE_HOME", (folders_.temporary / "state").string()},
                                          {"FOOTPLATE_FAULT", "eval_throw"}});
  // On this machine alone: its folders are there, whatever the job that this is in has besides.
  std::erase_if(command.environment, [](const std::string& variable) {
    return variable.starts_with("SLURM_") || variable.starts_with("PBS_") || variable.starts_with("LSB_");
  });
  const auto code = run_to_end(command, kRunTakes);
  const auto result = read_result_file(runs / "doctor" / kResultFile);
  const int failed = failed_evaluations(runs / "doctor");
  const std::int64_t step = result ? result->step : 0;
  check.values = {{"code", code ? Json(*code) : Json()}, {"step", step}, {"recorded", failed}};
  if (!code || *code != 0 || step != kSteps)
    return to_mend(
        check, "a run of two ranks didn't get to its end: " + (code ? last_output() : code.error().message),
        "try it yourself: footplate run synthetic -n 2 --batch");
  if (failed == 0)
    return to_mend(check, "evaluations failed in a run of two ranks, and metrics.jsonl doesn't have it",
                   "see that the disk of the runs isn't full (df -h)");
  check.found = "failed in a run of 2 ranks " + std::to_string(failed) +
                " times (injected): each is recorded, and " + "training went on to its last step";
  return check;
}

}  // namespace footplate
