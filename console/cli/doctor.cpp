// footplate doctor: is this machine fit for runs? Looks, then tries; says of each what is good, or how to
// mend it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "console/cli/commands.h"
#include "console/cli/configuration.h"
#include "console/cli/programs.h"
#include "console/client/render/render.h"
#include "console/client/runs/run_index.h"
#include "console/doctor/deadline_check.h"
#include "console/doctor/host_checks.h"
#include "console/doctor/machine.h"
#include "console/doctor/rank_trials.h"
#include "console/launch/start/find_rank.h"
#include "console/lua/config/lua_version.h"
#include "protocol/exit_codes.h"
#include "protocol/layout.h"
#include "protocol/port_range.h"
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
  std::optional<std::int64_t> elements;  ///< nothing: kLargeReduction, or what there is memory for
  std::optional<std::string> host, hostfile;
  std::vector<std::string> words;  ///< whose settings are looked at
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

  /// `hosts`: how many others were looked at.
  int close(std::size_t hosts) const {
    if (json_)
      std::fputs(
          to_line({{"good", to_mend_ == 0}, {"version", kFootplateVersion}, {"checks", checks_}}).c_str(),
          stdout);
    else
      std::puts(summary(hosts).c_str());
    return static_cast<int>(to_mend_ == 0 ? ExitCode::done : ExitCode::failed);
  }

 private:
  std::string summary(std::size_t hosts) const {
    std::string text = std::to_string(to_mend_) + " to mend";
    if (to_mend_ == 0)
      text = hosts == 0 ? "this machine is fit for runs"
                        : "this machine is fit for runs, and " + std::to_string(hosts) + " hosts start ranks";
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
  auto devices = read_devices(root);
  if (devices.library.empty()) devices.library = find_driver_library();
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
  for (const Part part : {Part::console, Part::lua})
    if (const auto path = find_part(part, program_folder()); !std::filesystem::exists(path, ignored))
      missing.push_back(path.filename());
  return missing;
}

Check left_out(const std::string& name, const std::string& why) {
  return {.name = name, .verdict = Verdict::left_out, .found = why};
}

/// What footplate-rank says of itself; nothing where it can't be started at all.
std::optional<LibrariesAnswer> look_at_libraries(Trials& trials, Report& report) {
  const auto found = trials.libraries();
  if (!found) {
    Check check{.name = "versions", .verdict = Verdict::to_mend, .found = {}, .mend = {}};
    check.found = "footplate-rank doesn't start: " + found.error().message;
    check.mend = find_rank(program_folder())
                     ? "scripts/run builds it and installs what it needs; scripts/deps "
                       "--check says what is missing"
                     : "install what that says; in a source tree: scripts/run";
    report.add(check);
    report.add(left_out("environment", kNoRank));
    return std::nullopt;
  }
  const Libraries libraries{*found,        kFootplateVersion, FOOTPLATE_PINNED_TORCH, FOOTPLATE_PINNED_MPI,
                            lua_version(), missing_programs()};
  report.add(check_versions(libraries));
  report.add(check_environment(libraries, "/"));
  return *found;
}

Result<std::vector<Host>> hosts_of(const DoctorOptions& options) {
  if (options.host) return parse_hosts(*options.host);
  if (options.hostfile) return read_hostfile(*options.hostfile);
  return std::vector<Host>{};
}

/// GB/s that was measured, where the check has one.
std::optional<double> rate_in(const Check& check) {
  const auto rate = check.values.find("gb_per_s");
  if (rate == check.values.end() || !rate->is_number()) return std::nullopt;
  return rate->get<double>();
}

/// Each host by itself, then those that start all at once, then what is between them. GB/s of the slowest
/// of what was measured; nothing: nothing was.
std::optional<double> look_at_hosts(Trials& trials, Report& report, const std::vector<Host>& hosts,
                                    const std::optional<LibrariesAnswer>& here) {
  std::optional<double> slowest;
  const auto add = [&](const Check& check) {
    report.add(check);
    if (const auto rate = rate_in(check)) slowest = std::min(slowest.value_or(*rate), *rate);
  };
  std::vector<Host> good;
  std::set<std::string> bad;
  for (const Host& host : hosts) {
    const Check check = here ? trials.host(host, *here) : left_out("host " + host.name, kNoRank);
    if (trials.was_interrupted() != 0) return slowest;
    report.add(check);
    // One that starts a process of another version isn't asked to speak with ours.
    if (check.verdict == Verdict::good)
      good.push_back(host);
    else
      bad.insert(host.name);
  }
  if (hosts.size() < 2) return slowest;
  const Check together = good.size() > 1
                             ? trials.hosts_together(good)
                             : left_out("hosts together", "not checked: fewer than two hosts are good");
  if (trials.was_interrupted() != 0) return slowest;
  add(together);
  for (const auto& [a, b] : pairs_to_measure(hosts.size())) {
    const bool possible = !bad.contains(hosts[a].name) && !bad.contains(hosts[b].name);
    const Check link = possible ? trials.link(hosts[a], hosts[b])
                                : left_out(link_name(hosts[a], hosts[b]), "not checked: see its hosts above");
    if (trials.was_interrupted() != 0) return slowest;
    add(link);
  }
  if (hosts.size() > kAllPairs)
    report.add(
        left_out("other links", "of more than " + std::to_string(kAllPairs) +
                                    " hosts, neighbours in a ring are measured; others: --host n1,n7"));
  return slowest;
}

std::string memory_text(std::int64_t elements) {
  return elements_text(elements) + " need " + bytes_text(static_cast<double>(memory_of_reduction(elements))) +
         " of memory";
}

/// The usual one, else the largest that there is memory for; what was asked for isn't made smaller.
Check large_reduction(Trials& trials, const DoctorOptions& options, std::optional<std::int64_t> memory) {
  const char* name = "large reduction";
  if (options.quick) return left_out(name, "--quick");
  const std::int64_t wanted = options.elements.value_or(kLargeReduction);
  const bool fits = memory.value_or(0) >= memory_of_reduction(wanted);
  if (!fits && options.elements) return left_out(name, memory_text(wanted) + "; fewer: --elements 50000000");
  const std::int64_t largest = fits ? wanted : largest_reduction(memory.value_or(0));
  if (!fits && largest <= kSmallReduction) return left_out(name, memory_text(wanted));
  Check check = trials.reduction(name, largest);
  if (!fits) check.found += "; the most that fit, " + memory_text(wanted);
  return check;
}

/// The settings that a run would have. Error: what was given isn't right; without any words, nothing where
/// the table of settings is missing, which the versions tell of.
struct Configured {
  Schema schema;
  Settings settings;
};
Result<std::optional<Configured>> configured(const std::vector<std::string>& words) {
  auto schema = load_schema();
  if (!schema && words.empty()) return std::optional<Configured>();
  if (!schema) return tl::unexpected(schema.error());
  auto settings = configure(split_words(words), *schema, Settings::defaults(*schema));
  if (!settings) return tl::unexpected(settings.error());
  return std::optional<Configured>({*std::move(schema), *std::move(settings)});
}

Result<int> interrupted(const Trials& trials) {
  return fail(ErrorKind::failed, std::string("interrupted by ") + signal_name(trials.was_interrupted()) +
                                     "; not all was looked at");
}

Result<int> doctor(const DoctorOptions& options) {
  const auto hosts = hosts_of(options);
  if (!hosts) return tl::unexpected(hosts.error());
  const auto run = configured(options.words);
  if (!run) return tl::unexpected(run.error());
  Signals signals;  // before anything is made that a signal would leave behind
  Report report(options.json);
  const auto memory = look_at_machine(report);
  report.add(*run ? check_settings((*run)->schema, (*run)->settings)
                  : left_out("settings", "not checked: the table of settings is missing"));
  auto trials = Trials::prepare(program_folder(), signals);
  if (!trials) {
    Check check{
        .name = "temporary files", .verdict = Verdict::to_mend, .found = trials.error().message, .mend = {}};
    check.mend = "runs need a private folder there: ls -ld /tmp /tmp/footplate-*, and df -h /tmp";
    report.add(check);
    for (const char* name : {"versions", "environment", "products", "fault tolerance", "all-reduce",
                             "large reduction", "deadlines", "evaluation"})
      report.add(left_out(name, kNoFolder));
    for (const Host& host : *hosts) report.add(left_out("host " + host.name, kNoFolder));
    return report.close(hosts->size());
  }
  if (*run) {
    const auto ports = parse_ports((*run)->settings.string("comm.ports"));
    if (!ports) return tl::unexpected(ports.error());
    trials->speak_over((*run)->settings.string("comm.network"), *ports);
  }
  const auto libraries = look_at_libraries(*trials, report);
  double gb_per_s = 0;
  const auto deadlines = [&] {
    if (!*run) return left_out("deadlines", "not checked: see settings above");
    if (gb_per_s <= 0) return left_out("deadlines", "not checked: no reduction was measured");
    return check_deadlines((*run)->settings, gb_per_s, options.elements.value_or(kLargeReduction));
  };
  const std::vector<std::pair<const char*, std::function<Check()>>> tries{
      {"products", [&] { return trials->products(); }},
      {"fault tolerance", [&] { return trials->fault_tolerance(); }},
      {"all-reduce", [&] { return trials->reduction("all-reduce", kSmallReduction); }},
      {"large reduction", [&] { return large_reduction(*trials, options, memory); }},
      {"deadlines", deadlines},
      {"evaluation",
       [&] { return options.quick ? left_out("evaluation", "--quick") : trials->evaluation(); }}};
  for (const auto& [name, trial] : tries) {
    const Check check = libraries ? trial() : left_out(name, kNoRank);
    if (trials->was_interrupted() != 0) return interrupted(*trials);
    gb_per_s = rate_in(check).value_or(gb_per_s);
    report.add(check);
  }
  const auto between_hosts = look_at_hosts(*trials, report, *hosts, libraries);
  if (trials->was_interrupted() != 0) return interrupted(*trials);
  if (between_hosts && *run) {
    Check check =
        check_deadlines((*run)->settings, *between_hosts, options.elements.value_or(kLargeReduction));
    check.name = "host deadlines";
    report.add(check);
  }
  return report.close(hosts->size());
}

}  // namespace

Handler declare_doctor(CLI::App& command) {
  auto options = std::make_shared<DoctorOptions>();
  command.add_flag("--quick", options->quick, "without the large reduction and the run");
  command.add_flag("--json", options->json, "one JSON object instead of lines (docs/start.md)");
  command.add_option("CONFIG|KEY=VALUE", options->words,
                     "of a run that is meant: its settings are shown, and whether its deadlines fit");
  command
      .add_option("--elements", options->elements,
                  "size of the large reduction, in float32 (500000000, or as much as fits)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{2'000'000'000}));
  auto* host = command.add_option("--host,--hosts", options->host,
                                  "also: start a process on each of these hosts, and measure what is "
                                  "between them: n1,n2:4, as for mpirun");
  command.add_option("--hostfile", options->hostfile, "the same with the hosts of a file, as for mpirun")
      ->excludes(host);
  return [options] { return doctor(*options); };
}

}  // namespace footplate
