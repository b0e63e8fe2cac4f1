// footplate status: asks the run's console; of a run that is over, or hasn't got one yet, reads what there
// is.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/client/link/find_run.h"
#include "console/client/link/run_connection.h"
#include "console/client/render/render.h"
#include "console/launch/run_dir/missing_result.h"
#include "console/launch/supervise/start_watch.h"
#include "console/launch/supervise/supervisor.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswerTakes = 5s;

/// For a run without a console: its record, in the form of a status.
Json from_record(const RunRecord& run) {
  Json status = {{"run", run.name()},
                 {"state", run.state()},
                 {"step", step_now(run)},
                 {"notes", Json::array()},
                 {"directory", run.directory.string()}};
  if (run.result.is_object()) status["result"] = run.result;
  if (run.life == Life::live && run.state() == "starting") status.update(start_status(run));
  return status;
}

std::string logs_of(const RunRecord& run) {
  return "logs: " + launcher_log(run.directory).string() + ", " +
         (run.directory / "log" / "rank-0.log").string() + "\n";
}

int show(const Json& status, const RunRecord& run, bool json, const std::string& tail) {
  const std::string text = json ? to_line(status) : render_status(status, run.name()) + tail;
  std::fputs(for_output(text, STDOUT_FILENO).c_str(), stdout);
  return 0;
}

Result<int> status(const std::string& name, bool json) {
  const auto run = find_run(name, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  if (run->life == Life::lost) return tl::unexpected(not_live(*run));
  if (run->life == Life::ended)
    return show(from_record(*run), *run, json, run->name() + " " + run->outcome() + "\n");
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTakes;
  auto connection = Connection::open(run->socket(), deadline);
  if (!connection) {
    if (run->elsewhere() || connection.error().kind == ErrorKind::timed_out)
      return tl::unexpected(not_live(*run));
    return show(from_record(*run), *run, json,
                "its console doesn't answer yet: " + connection.error().message + "\n" + logs_of(*run));
  }
  const auto answer = connection->request({{"op", "status"}}, deadline);
  if (!answer) return tl::unexpected(answer.error());
  return show(*answer, *run, json, "");
}

}  // namespace

Handler declare_status(CLI::App& command) {
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("RUN", *run, "name or path; left out: the only live run, else the newest");
  command.add_flag("--json", *json, "as the console sends it (docs/protocol.md)");
  return [=] { return status(*run, *json); };
}

}  // namespace footplate
