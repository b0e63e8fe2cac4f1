#include "console/launch/supervise/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "console/client/link/run_connection.h"
#include "console/launch/run_dir/earlier_state.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/supervise/explanation.h"
#include "protocol/exit_codes.h"
#include "run_files/file_names.h"
#include "run_files/result_file.h"
#include "run_files/run_file.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kStartLook = 20ms;
constexpr auto kAnswerTakes = 500ms;
constexpr auto kConsoleFollows = 2s;  ///< after the first step; a run without a console is one all the same

/// What the console says; nothing where there is none yet.
std::optional<std::int64_t> step_of_console(const RunFile& record) {
  const auto deadline = steady_clock::now() + kAnswerTakes;
  auto connection = Connection::open(record.socket, deadline);
  if (!connection) return std::nullopt;
  const auto status = connection->request_as<RunStatus>({"status"}, deadline);
  return status ? std::optional(status->step) : std::nullopt;
}

/// Watches for the first step of a start, and for the console that the next command will want.
class FirstStep {
 public:
  FirstStep(const RunPlan& plan, pid_t supervisor) : plan_(plan), supervisor_(supervisor) {}

  bool is_done() {
    const auto record = read_run_file(plan_.directory);
    if (!record || record->launcher_pid != supervisor_) return false;  // of an earlier start
    if (record->state == RunState::starting) return false;
    const std::int64_t first = first_step_of(plan_.directory, plan_.start);
    if (const auto step = step_of_console(*record)) return *step > first;
    if (record->step <= first) return false;
    const auto now = steady_clock::now();
    patient_until_ = std::min(patient_until_, now + kConsoleFollows);
    return now >= patient_until_;
  }

 private:
  const RunPlan& plan_;
  const pid_t supervisor_;
  steady_clock::time_point patient_until_ = steady_clock::time_point::max();
};

}  // namespace

Result<pid_t> detach(const std::filesystem::path& log) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorKind::failed, std::string("can't start a process: ") + std::strerror(errno));
  if (pid > 0) return pid;
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int talk = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(talk >= 0 ? talk : null, STDERR_FILENO);
  return 0;
}

int wait_for_first_step(const RunPlan& plan, pid_t supervisor, Signals& signals) {
  FirstStep first(plan, supervisor);
  for (int status = 0;; std::this_thread::sleep_for(kStartLook)) {
    const bool ended = ::waitpid(supervisor, &status, WNOHANG) != 0;
    if (!ended && !signals.take().empty()) {
      std::fprintf(stderr, "footplate: no longer waiting; %s goes on: footplate status %s\n",
                   plan.name.c_str(), plan.name.c_str());
      return 0;
    }
    if (!ended && !first.is_done()) continue;
    if (!ended) return 0;
    return explain_end(plan.name, plan.directory);
  }
}

int explain_end(const std::string& name, const std::filesystem::path& directory) {
  if (const auto refused = read_refused_start(directory)) {
    std::fprintf(stderr, "footplate: %s\n", explanation_of_refused(name, directory, *refused).c_str());
    return refused->code;
  }
  const auto result = read_result_file(directory / kResultFile);
  if (!result) {
    std::fprintf(stderr, "footplate: the supervisor of %s died; see %s\n", name.c_str(),
                 launcher_log(directory).c_str());
    return static_cast<int>(ExitCode::failed);
  }
  const std::string text = explanation(name, directory, *result);
  if (!text.empty()) std::fprintf(stderr, "footplate: %s\n", text.c_str());
  return result->code;
}

}  // namespace footplate
