#include "console/launch/supervise/start_watch.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "console/client/render/render.h"
#include "console/client/runs/process_table.h"
#include "console/client/runs/run_record.h"
#include "console/launch/run_dir/run_directory.h"
#include "protocol/host_name.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr char kEnded = '-';
constexpr char kUnknown = '?';
constexpr std::size_t kDescribed = 4;  ///< ranks told one by one; of the rest, their numbers
constexpr std::size_t kNumbered = 16;
constexpr auto kOthersTell = 3s;  ///< after a rank was lost: the others may write a result that tells more
constexpr auto kPatience = 15s;   ///< a start that takes longer is told about

char state_of(const Arrival& arrival) {
  if (arrival.host != host_name()) return kUnknown;
  const ProcessEntry process = process_entry(static_cast<pid_t>(arrival.pid));
  return process.pid == 0 || process.state == 'Z' || process.state == 'X' ? kEnded : process.state;
}

std::string state_text(const RankStart& rank) {
  switch (rank.process) {
    case kEnded:
      return ", its process has ended";
    case 'T':
    case 't':
      return ", its process is stopped";
    case 'D':
      return ", its process waits for a disk";
    case 'R':
      return ", its process computes";
    case 'S':
      return ", its process sleeps";
    default:
      return "";
  }
}

std::string describe(const RankStart& rank) {
  if (!rank.arrival) return "its process has not begun";
  return "host " + rank.arrival->host + ", pid " + std::to_string(rank.arrival->pid) + ", " +
         rank.arrival->place + state_text(rank);
}

/// What to look at, by what the first of the missing ranks does.
std::string advice(const RankStart& rank) {
  if (!rank.arrival)
    return "log/launcher.log tells what mpirun said; is that host up, and are the programs and LibTorch "
           "there?";
  const std::string pid = std::to_string(rank.arrival->pid);
  const std::string on = " on " + rank.arrival->host;
  switch (rank.process) {
    case kEnded:
      return "log/launcher.log for its last words, and dmesg" + on + " for the out-of-memory killer";
    case 'T':
    case 't':
      return "who stopped it (SIGSTOP, a debugger, a suspended container)" + on;
    case 'D':
      return "the disks and network file systems" + on + " (dmesg, mount)";
    case 'R':
      return "the load" + on + " (top), and whether its cores are shared with other jobs";
    default:
      return "the load, memory and network file systems" + on +
             ", and footplate doctor there; on a slow machine raise comm.init_timeout_s";
  }
}

std::string numbers(const std::vector<RankStart>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNumbered); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i].rank);
  return ranks.size() > kNumbered ? text + " and " + std::to_string(ranks.size() - kNumbered) + " more"
                                  : text;
}

int stage_of(const RankStart& rank) {
  return rank.arrival ? rank.arrival->stage : 0;
}

bool has_ended(const RankStart& rank) {
  return rank.process == kEnded;
}

std::vector<RankStart> ended(const std::vector<RankStart>& ranks) {
  std::vector<RankStart> list;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(list), has_ended);
  return list;
}

bool all_wait(const std::vector<RankStart>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankStart& rank) { return rank.arrival && rank.arrival->waits; });
}

/// The last line of a rank's file, of a few; empty where there is none.
std::string last_line(const fs::path& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

/// All are in the same wait, and none comes out of it.
std::string explain_all(const std::vector<RankStart>& ranks, const std::string& within) {
  std::string place = "any place";
  if (ranks.front().arrival) place = ranks.front().arrival->place;
  const std::string count =
      ranks.size() == 1 ? "the only rank" : "all " + std::to_string(ranks.size()) + " ranks";
  return count + (ranks.size() == 1 ? " is" : " are") + " in " + place + " and none comes out of it" +
         within +
         "; check: can the hosts reach each other (a firewall: comm.ports; network interfaces: "
         "comm.network), and what footplate doctor says";
}

bool none_has_begun(const std::vector<RankStart>& ranks) {
  return ranks.size() > 1 && std::none_of(ranks.begin(), ranks.end(),
                                          [](const RankStart& rank) { return rank.arrival.has_value(); });
}

/// mpirun doesn't reach the hosts, or they don't reach it.
std::string explain_none(const std::vector<RankStart>& ranks, const std::string& within) {
  return "no process of the " + std::to_string(ranks.size()) + " ranks has begun" + within +
         "; check: what mpirun said, in log/launcher.log; are the programs and LibTorch there; on several "
         "hosts, "
         "whether they reach each other at any TCP port, or at those of comm.ports (firewall)";
}

}  // namespace

std::vector<fs::path> start_notes(const PrivateFolders& folders, const fs::path& run_directory) {
  return {folders.temporary, run_directory / kStartNotesFolder};
}

std::vector<RankStart> read_starts(const std::vector<fs::path>& folders, int ranks) {
  std::vector<RankStart> found;
  for (int rank = 0; rank < ranks; ++rank) {
    RankStart start{.rank = rank, .arrival = std::nullopt};
    for (const fs::path& folder : folders)
      if (const auto json = parse_line(last_line(folder / arrival_file(rank))); json && !start.arrival)
        if (auto arrival = Arrival::from_json(*json)) start.arrival = *std::move(arrival);
    if (start.arrival) start.process = state_of(*start.arrival);
    found.push_back(std::move(start));
  }
  return found;
}

std::vector<RankStart> ranks_behind(const std::vector<RankStart>& ranks) {
  const auto [first, last] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return stage_of(a) < stage_of(b); });
  std::vector<RankStart> behind;
  if (ranks.empty() || stage_of(*first) == stage_of(*last)) return behind;
  for (const auto& rank : ranks)
    if (stage_of(rank) == stage_of(*first)) behind.push_back(rank);
  return behind;
}

std::string explain_missing(const std::vector<RankStart>& ranks, const std::string& within) {
  if (none_has_begun(ranks)) return explain_none(ranks, within);
  std::vector<RankStart> missing = ended(ranks);
  if (missing.empty()) missing = ranks_behind(ranks);
  if (missing.empty() && !all_wait(ranks)) missing = ranks;
  if (missing.empty()) return explain_all(ranks, within);
  std::string text = (missing.size() == 1 ? "rank " : "ranks ") + numbers(missing) + " of " +
                     std::to_string(ranks.size()) + (missing.size() == 1 ? " has" : " have") +
                     (has_ended(missing.front()) ? " ended before the first step" : " not arrived") + within +
                     ": ";
  for (std::size_t i = 0; i < std::min(missing.size(), kDescribed); ++i) {
    if (i > 0) text += "; ";
    if (missing.size() > 1) text += "rank " + std::to_string(missing[i].rank) + " ";
    text += describe(missing[i]);
  }
  return text + "; check: " + advice(missing.front());
}

bool is_starting(const RunRecord& run) {
  return run.life == Life::live && run.run.state.value_or(RunState::starting) == RunState::starting;
}

StartStatus start_status(const RunRecord& run) {
  if (const std::string& due = run.run.starts_at; !due.empty()) {
    const double since_s = seconds_since(due);
    return {"starting again" + (since_s < 0 ? " in " + duration(-since_s) : ""), {}};
  }
  const auto notes = start_notes(PrivateFolders::of(run.run.id), run.directory);
  const auto ranks = read_starts(notes, run.run.world_size.value_or(0));
  auto missing = ended(ranks);
  if (missing.empty()) missing = ranks_behind(ranks);
  if (missing.empty() && !all_wait(ranks)) missing = ranks;
  StartStatus status{"starting", {}};
  if (const double since_s = seconds_since(run.run.started); since_s >= 0)
    status.note += " for " + duration(since_s);
  if (none_has_begun(ranks))
    status.note += ", and no process of the " + std::to_string(ranks.size()) + " ranks has begun";
  else if (!missing.empty())
    status.note += ", waiting for rank " + numbers(missing) + " of " + std::to_string(ranks.size()) + ": " +
                   describe(missing.front());
  else if (!ranks.empty())
    status.note += ", all of " + std::to_string(ranks.size()) + " ranks in " + ranks.front().arrival->place;
  for (const RankStart& rank : ranks) {
    if (rank.arrival)
      status.ranks.push_back({rank.rank, rank.arrival->host, static_cast<int>(rank.arrival->pid),
                              rank.arrival->place + state_text(rank)});
    else
      status.ranks.push_back({rank.rank, "", std::nullopt, "its process has not begun"});
  }
  return status;
}

StartWatch::StartWatch(fs::path directory, const PrivateFolders& folders, int ranks, double timeout_s)
    : directory_(std::move(directory)),
      notes_(start_notes(folders, directory_)),
      ranks_(ranks),
      timeout_s_(timeout_s) {}

std::optional<std::string> StartWatch::look(Clock::time_point now) {
  if (is_ready() || has_result()) return std::nullopt;
  const auto ranks = read_starts(notes_, ranks_);
  if (is_lost(ranks, now)) return explain_missing(ranks, "");
  const auto since = waiting_since(ranks, now);
  if (!since || now - *since < std::chrono::duration<double>(timeout_s_)) return std::nullopt;
  return explain_missing(ranks, bound());
}

std::string StartWatch::patience(Clock::time_point now) {
  if (has_spoken_ || ready_ || now - launched_ < kPatience) return {};
  const auto ranks = read_starts(notes_, ranks_);
  const auto missing = ranks_behind(ranks);
  const bool none = none_has_begun(ranks);
  has_spoken_ = none || !missing.empty();
  if (none) return "starting: " + explain_none(ranks, "") + "; the start fails if none begins" + bound();
  if (missing.empty()) return {};
  const std::string whom =
      "starting, and waiting for rank " + numbers(missing) + ": " + describe(missing.front());
  return whom + (waiting_since(ranks, now) ? "; the start fails if it doesn't come" + bound() : "");
}

std::optional<std::string> StartWatch::lost_rank() const {
  if (ready_ || !is_starting(directory_)) return std::nullopt;
  // Every process has ended by now: the one that is behind was the first.
  const auto ranks = read_starts(notes_, ranks_);
  const auto behind = ranks_behind(ranks);
  const auto& named = behind.empty() ? ranks : behind;
  const bool known =
      std::any_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.arrival.has_value(); });
  // Ranks that refuse to start do so together; one of another host may have left no note.
  if (has_result() && !named.front().arrival) return std::nullopt;
  if (!known || (behind.empty() && (ranks_ > 1 || has_result()))) return std::nullopt;
  return "rank " + numbers(named) + " of " + std::to_string(ranks_) +
         " has ended before the first step: " + describe(named.front()) + "; check: " + advice(named.front());
}

/// No rank's step, but rank 0's record says when all of them were ready.
bool StartWatch::is_ready() {
  if (!ready_) ready_ = !is_starting(directory_);
  return ready_;
}

bool StartWatch::has_result() const {
  std::error_code ignored;
  return fs::exists(directory_ / "result.json", ignored);
}

std::optional<StartWatch::Clock::time_point> StartWatch::waiting_since(const std::vector<RankStart>& ranks,
                                                                       Clock::time_point now) {
  std::optional<Clock::time_point> since;
  bool have_met = true;
  for (const auto& rank : ranks) {
    auto& [stage, when] = places_.try_emplace(rank.rank, 0, launched_).first->second;
    if (stage != stage_of(rank)) {
      stage = stage_of(rank);
      when = now;
    }
    have_met = have_met && rank.arrival && rank.arrival->has_met;
    if (rank.arrival && rank.arrival->waits) since = std::min(since.value_or(when), when);
  }
  if (!have_met) return launched_;
  return since;
}

bool StartWatch::is_lost(const std::vector<RankStart>& ranks, Clock::time_point now) {
  if (std::none_of(ranks.begin(), ranks.end(), has_ended)) {
    lost_at_.reset();
    return false;
  }
  if (!lost_at_) lost_at_ = now;
  return now - *lost_at_ >= kOthersTell;
}

std::string StartWatch::bound() const {
  char text[64];
  std::snprintf(text, sizeof(text), " within %g s (comm.init_timeout_s)", timeout_s_);
  return text;
}

}  // namespace footplate
