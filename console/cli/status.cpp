// footplate status: asks the run's console; of a run that is over, or hasn't got one yet, reads what there
// is.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/record_status_json.h"
#include "console/cli/via.h"
#include "console/client/link/find_run.h"
#include "console/client/link/run_connection.h"
#include "console/client/render/render.h"
#include "console/launch/run_dir/missing_result.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/supervise/start_watch.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswerTakes = 5s;

/// For a run without a console.
RecordStatus from_record(const RunRecord& run) {
  RecordStatus status{run.name(), run.state(), step_now(run), run.directory.string(), run.result, {}, {}};
  if (run.run.ranks_asked > run.run.world_size) status.ranks = ranks_text(run.run);
  if (is_starting(run)) status.start = start_status(run);
  return status;
}

std::string render(const RecordStatus& status) {
  std::string text = status.start ? "! " + status.start->note + "\n" : "";
  text += status.run + " · " + status.state + " · step " + std::to_string(status.step) +
          (status.ranks.empty() ? "" : " · " + status.ranks + " ranks") + "\n";
  if (!status.start) return text;
  std::vector<std::vector<std::string>> rows;
  for (const StartingRank& rank : status.start->ranks)
    rows.push_back({std::to_string(rank.rank), rank.host, rank.pid ? std::to_string(*rank.pid) : "-", "-",
                    rank.phase, "-", ""});
  return text + rank_table(std::move(rows));
}

std::string logs_of(const RunRecord& run) {
  return "logs: " + launcher_log(run.directory).string() + ", " +
         (run.directory / "log" / "rank-0.log").string() + "\n";
}

void put(const std::string& text) {
  std::fputs(for_output(text, STDOUT_FILENO).c_str(), stdout);
}

int show(const RecordStatus& status, bool json, const std::string& tail) {
  put(json ? to_line(to_json(status)) : render(status) + tail);
  return 0;
}

Result<int> status(const std::string& name, bool json) {
  const auto run = find_run(name, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  if (run->life == Life::lost) return tl::unexpected(not_live(*run));
  if (run->life == Life::ended)
    return show(from_record(*run), json, run->name() + " " + run->outcome() + "\n");
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTakes;
  auto connection = Connection::open(run->socket(), deadline);
  if (!connection) {
    if (run->elsewhere() || connection.error().kind == ErrorKind::timed_out)
      return tl::unexpected(not_live(*run));
    return show(from_record(*run), json,
                "its console doesn't answer yet: " + connection.error().message + "\n" + logs_of(*run));
  }
  const auto answer = connection->request({"status"}, deadline);
  if (json && answer) {  // as it is, also of a run of another build
    put(to_line(*answer));
    return 0;
  }
  const auto now = answer_as<RunStatus>(answer);
  if (!now) return tl::unexpected(now.error());
  put(render_status(*now, run->name()));
  return 0;
}

}  // namespace

Handler declare_status(CLI::App& command) {
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("RUN", *run, "name or path; left out: the only live run, else the newest");
  command.add_flag("--json", *json, "as the console sends it (docs/protocol.md)");
  return with_via(
      command, [run]() -> const std::string& { return *run; }, [=] { return status(*run, *json); });
}

}  // namespace footplate
