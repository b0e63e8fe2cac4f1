#include "console/launch/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "console/client/connection.h"
#include "console/client/json_file.h"
#include "console/client/run_record.h"
#include "console/launch/supervisor.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;
constexpr auto kAnswerTakes = 500ms;

bool has_stepped(const std::filesystem::path& directory) {
  const auto record = read_json_file(directory / "run.json");
  if (!record || !record->is_object()) return false;
  if (number_of(*record, "step") >= 1) return true;
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTakes;
  auto connection = Connection::open(text_of(*record, "socket"), deadline);
  if (!connection) return false;
  const auto status = connection->request({{"op", "status"}}, deadline);
  return status && number_of(*status, "step") >= 1;
}

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
  for (int status = 0;; std::this_thread::sleep_for(kLook)) {
    const bool ended = ::waitpid(supervisor, &status, WNOHANG) != 0;
    if (!ended && !signals.take().empty()) {
      std::fprintf(stderr, "footplate: no longer waiting; %s goes on: footplate status %s\n",
                   plan.name.c_str(), plan.name.c_str());
      return 0;
    }
    if (!ended && !has_stepped(plan.directory)) continue;
    if (!ended) return 0;
    return explain_end(plan.name, plan.directory);
  }
}

int explain_end(const std::string& name, const std::filesystem::path& directory) {
  const auto result = read_json_file(directory / "result.json");
  if (!result || !result->is_object()) {
    std::fprintf(stderr, "footplate: the supervisor of %s died; see %s\n", name.c_str(),
                 launcher_log(directory).c_str());
    return static_cast<int>(ExitCode::failed);
  }
  const std::string text = explanation(name, directory, *result);
  if (!text.empty()) std::fprintf(stderr, "footplate: %s\n", text.c_str());
  return static_cast<int>(integer_of(*result, "code", static_cast<int>(ExitCode::failed)));
}

}  // namespace footplate
