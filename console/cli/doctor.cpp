// footplate doctor: is this machine fit for runs? Looks, then tries; says of each what is good, or how to
// mend it.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/render.h"
#include "console/client/run_index.h"
#include "console/doctor/machine.h"
#include "console/doctor/trial.h"
#include "console/lua/config/version.h"
#include "protocol/exit_codes.h"
#include "protocol/version.h"

namespace footplate {
namespace {

constexpr std::int64_t kSmallReduction = 4'000'000;  ///< 16 MB: as large as a bucket of gradients gets
constexpr std::int64_t kLargeReduction =
    500'000'000;  ///< as large as a model's embedding and head together get

constexpr const char* kNoRank = "not checked: footplate-rank doesn't start (versions, above)";
constexpr const char* kNoFolder = "not checked: it needs a private folder (temporary files, above)";

struct DoctorOptions {
  bool json = false;
  bool quick = false;
  std::int64_t elements = kLargeReduction;
};

/// The lines so far: shown as they come, or kept for one JSON object.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void add(const Check& check) {
    checks_.push_back(to_json(check));
    if (check.verdict == Verdict::to_mend) ++to_mend_;
    if (check.verdict == Verdict::left_out) ++left_out_;
    if (json_) return;
    std::fputs(for_output(to_lines(check), STDOUT_FILENO).c_str(), stdout);
    std::fflush(stdout);
  }

  int close() const {
    if (json_)
      std::fputs(
          to_line({{"good", to_mend_ == 0}, {"version", kFootplateVersion}, {"checks", checks_}}).c_str(),
          stdout);
    else
      std::puts(summary().c_str());
    return static_cast<int>(to_mend_ == 0 ? ExitCode::done : ExitCode::failed);
  }

 private:
  std::string summary() const {
    std::string text = to_mend_ == 0 ? "this machine is fit for runs" : std::to_string(to_mend_) + " to mend";
    if (left_out_ > 0) text += ", " + std::to_string(left_out_) + " left out";
    return text;
  }

  const bool json_;
  Json checks_ = Json::array();
  int to_mend_ = 0;
  int left_out_ = 0;
};

/// What is only looked at. Returns the bytes of memory that can be used.
std::optional<std::int64_t> look_at_machine(Report& report) {
  const std::filesystem::path root = "/";
  const auto memory = parse_meminfo(read_text(root / "proc/meminfo"));
  const auto limits = read_group_limits(root);
  const auto devices = read_devices(root);
  const auto network = read_network(root);
  const std::string user = read_user();
  report.add(check_memory(memory, limits));
  report.add(check_cores(read_cores(), limits));
  report.add(check_devices(devices));
  report.add(check_network(network));
  report.add(check_shared_memory(read_room("/dev/shm")));
  report.add(check_limits(read_limits(), !network.infiniband.empty() || !devices.models.empty()));
  report.add(check_logout(read_logout(root, user), user));
  report.add(check_disk(read_room(runs_folder()), read_room("/tmp")));
  return usable_memory(memory, limits);
}

std::vector<std::string> missing_programs() {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const char* name : {"footplate-console", "footplate-lua"})
    if (!std::filesystem::exists(program_folder() / name, ignored)) missing.emplace_back(name);
  return missing;
}

Check left_out(const std::string& name, const std::string& why) {
  return {.name = name, .verdict = Verdict::left_out, .found = why};
}

/// Whether footplate-rank can be started at all.
bool look_at_libraries(Trials& trials, Report& report) {
  const auto found = trials.libraries();
  if (!found) {
    Check check{.name = "versions", .verdict = Verdict::to_mend, .found = {}, .mend = {}};
    check.found = "footplate-rank doesn't start: " + found.error().message;
    check.mend =
        "scripts/run builds it and installs what it needs; scripts/deps --check says what is missing";
    report.add(check);
    report.add(left_out("environment", kNoRank));
    return false;
  }
  const Libraries libraries{*found,        kFootplateVersion, FOOTPLATE_PINNED_TORCH, FOOTPLATE_PINNED_MPI,
                            lua_version(), missing_programs()};
  report.add(check_versions(libraries));
  report.add(check_environment(libraries, "/"));
  return true;
}

Check large_reduction(Trials& trials, const DoctorOptions& options, std::optional<std::int64_t> memory) {
  const char* name = "large reduction";
  if (options.quick) return left_out(name, "--quick");
  const std::int64_t needed = memory_of_reduction(options.elements);
  if (memory.value_or(0) < needed)
    return left_out(name, elements_text(options.elements) + " need " +
                              bytes_text(static_cast<double>(needed)) +
                              " of memory; fewer: --elements 50000000");
  return trials.reduction(name, options.elements);
}

Result<int> doctor(const DoctorOptions& options) {
  Signals signals;  // before anything is made that a signal would leave behind
  Report report(options.json);
  const auto memory = look_at_machine(report);
  auto trials = Trials::prepare(program_folder(), signals);
  if (!trials) {
    Check check{
        .name = "temporary files", .verdict = Verdict::to_mend, .found = trials.error().message, .mend = {}};
    check.mend = "runs need a private folder there: ls -ld /tmp /tmp/footplate-*, and df -h /tmp";
    report.add(check);
    for (const char* name :
         {"versions", "environment", "fault tolerance", "all-reduce", "large reduction", "evaluation"})
      report.add(left_out(name, kNoFolder));
    return report.close();
  }
  const bool starts = look_at_libraries(*trials, report);
  const std::vector<std::pair<const char*, std::function<Check()>>> tries{
      {"fault tolerance", [&] { return trials->fault_tolerance(); }},
      {"all-reduce", [&] { return trials->reduction("all-reduce", kSmallReduction); }},
      {"large reduction", [&] { return large_reduction(*trials, options, memory); }},
      {"evaluation",
       [&] { return options.quick ? left_out("evaluation", "--quick") : trials->evaluation(); }}};
  for (const auto& [name, trial] : tries) {
    const Check check = starts ? trial() : left_out(name, kNoRank);
    if (const int signal = trials->was_interrupted(); signal != 0)
      return fail(ErrorKind::failed,
                  std::string("interrupted by ") + signal_name(signal) + "; not all was looked at");
    report.add(check);
  }
  return report.close();
}

}  // namespace

Handler declare_doctor(CLI::App& command) {
  auto options = std::make_shared<DoctorOptions>();
  command.add_flag("--quick", options->quick, "without the large reduction and the run");
  command.add_flag("--json", options->json, "one JSON object instead of lines (docs/guide.md)");
  command.add_option("--elements", options->elements, "size of the large reduction, in float32 (500000000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{2'000'000'000}));
  return [options] { return doctor(*options); };
}

}  // namespace footplate
