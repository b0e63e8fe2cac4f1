#include "console/client/link/find_run.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "console/client/runs/run_index.h"
#include "protocol/schema.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListed = 10;  ///< names in an error message
constexpr std::chrono::milliseconds kLook{20};

std::string listed(const std::vector<const RunRecord*>& runs, bool with_path) {
  std::string text;
  for (std::size_t i = 0; i < runs.size() && i < kListed; ++i)
    text += (text.empty() ? "" : ", ") + (with_path ? runs[i]->directory.string() : runs[i]->name()) + " (" +
            runs[i]->state() + ")";
  return runs.size() > kListed ? text + ", … (footplate ls -a)" : text;
}

std::vector<const RunRecord*> select(const std::vector<RunRecord>& runs, const auto& condition) {
  std::vector<const RunRecord*> selected;
  for (const auto& run : runs)
    if (condition(run)) selected.push_back(&run);
  return selected;
}

bool is_live(const RunRecord& run) {
  return run.life == Life::live;
}

Result<RunRecord> the_only_one(const std::vector<RunRecord>& runs, Wanted wanted) {
  const auto live = select(runs, is_live);
  if (live.size() == 1) return *live.front();
  if (live.size() > 1)
    return fail(ErrorKind::usage, "several runs are live, name one: " + listed(live, false));
  if (runs.empty())
    return fail(ErrorKind::unreachable, "there is no run yet, here or in " + index_folder().string() +
                                            "; start one with: footplate run CONFIG");
  if (wanted == Wanted::any) return runs.front();
  return fail(ErrorKind::unreachable,
              "no run is live; the last one, " + runs.front().name() + ", " + runs.front().outcome());
}

/// Of several runs with one name the live one is meant, then the one in this folder, then the newest.
Result<RunRecord> best_of(const std::vector<const RunRecord*>& named) {
  std::vector<const RunRecord*> live;
  std::copy_if(named.begin(), named.end(), std::back_inserter(live),
               [](const auto* run) { return is_live(*run); });
  if (live.size() > 1)
    return fail(ErrorKind::usage, "several live runs have that name, give the path: " + listed(live, true));
  if (live.size() == 1) return *live.front();
  std::error_code ignored;
  const fs::path here = fs::absolute(runs_folder(), ignored).lexically_normal();
  for (const auto* run : named)
    if (run->directory.parent_path() == here) return *run;
  return *named.front();
}

/// As a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char one : word) text += one == '\'' ? std::string("'\\''") : std::string(1, one);
  return text + "'";
}

/// Whether a word, or the value in --OPTION=VALUE, is a path from where this process is: ssh begins at home.
bool names_something_here(const std::string& word) {
  std::error_code ignored;
  const auto begin = word.starts_with("--") ? word.find('=') + 1 : 0;
  const fs::path path = word.substr(begin);
  return !path.empty() && path.is_relative() && fs::exists(path, ignored);
}

}  // namespace

Result<RunRecord> find_run(const std::string& name, Wanted wanted) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || fs::exists(fs::path(name) / "run.json", ignored))
    return read_run(name);
  const auto runs = known_runs();
  if (name.empty()) return the_only_one(runs, wanted);
  const auto named = select(runs, [&](const RunRecord& run) { return run.name() == name; });
  if (!named.empty()) return best_of(named);
  // A folder that was renamed.
  const auto recorded = select(runs, [&](const RunRecord& run) { return run.run.name == name; });
  if (!recorded.empty()) return best_of(recorded);
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.name());
  std::string message = "there is no run '" + name + "'";
  if (const std::string near = nearest(name, names); !near.empty()) message += "; did you mean " + near + "?";
  const auto all = select(runs, [](const RunRecord&) { return true; });
  message += all.empty() ? "; start one with: footplate run CONFIG" : " (runs: " + listed(all, false) + ")";
  return fail(ErrorKind::unreachable, std::move(message));
}

Result<Connection> connect_to(const std::string& name, Deadline deadline, std::chrono::seconds at_most) {
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + at_most);
  for (;;) {
    const auto run = find_run(name, Wanted::live);
    if (!run) return tl::unexpected(run.error());
    if (run->life != Life::live || run->elsewhere()) return tl::unexpected(not_live(*run));
    auto connection = Connection::open(run->socket(), deadline);
    if (connection || connection.error().kind != ErrorKind::unreachable) return connection;
    if (std::chrono::steady_clock::now() >= until)
      return fail(ErrorKind::unreachable, not_live(*run).message + " (" + connection.error().message + ")");
    std::this_thread::sleep_for(kLook);
  }
}

Error not_live(const RunRecord& record) {
  const std::string name = record.name();
  std::string message = "run " + name + " ";
  if (record.life == Life::live && record.elsewhere())
    message += "is on host " + record.host() + ", and its console listens only there; try: ssh " +
               record.host() + " " + typed_command(record);
  else if (record.life == Life::live)
    message += "is " + record.state() + " and its console doesn't answer yet; see " +
               (record.directory / "log" / "launcher.log").string();
  else
    message += record.outcome() + "; " + record.what_next();
  return Error{ErrorKind::unreachable, std::move(message)};
}

std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  std::string word;
  std::getline(file, word, '\0');
  while (std::getline(file, word, '\0')) words.push_back(word);
  return words;
}

std::string remote_command(const RunRecord& run, const std::vector<std::string>& words) {
  std::error_code ignored;
  const bool here = std::any_of(words.begin(), words.end(), names_something_here);
  std::string command = here ? "cd " + shell_word(fs::current_path(ignored).string()) + " 2>/dev/null; " : "";
  command += "FOOTPLATE_RUNS=" + shell_word(run.directory.parent_path().string()) + " " +
             shell_word(fs::read_symlink("/proc/self/exe", ignored).string());
  for (const std::string& word : words) command += " " + shell_word(word);
  return command;
}

/// Words are quoted twice, for the shells of both hosts.
std::string typed_command(const RunRecord& run) {
  const std::string command = remote_command(run, typed_words());
  return command.find_first_of("';") == std::string::npos ? command : shell_word(command);
}

}  // namespace footplate
