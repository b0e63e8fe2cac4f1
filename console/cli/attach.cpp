// footplate attach: the prompt of a run.
#include "console/cli/attach.h"

#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/via.h"
#include "console/client/link/find_run.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/launch/run_dir/earlier_state.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/file_tail.h"
#include "console/launch/supervise/detach.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

constexpr std::size_t kLastEvents = 5;

void say(const std::string& text) {
  const std::string shown = ::isatty(STDOUT_FILENO) == 1 ? in_locale(printable(text)) : text;
  std::fprintf(stdout, "%s\n", shown.c_str());
}

std::string next_command(const RunRecord& run) {
  const bool resumable = run.result && run.result->checkpoint;
  return run.is_done() || resumable ? run.what_next() : "see: footplate log " + run.name();
}

/// How a run ended, with its exit code.
Result<int> outcome(const RunRecord& run, bool with_events) {
  if (!run.result) return tl::unexpected(not_live(run));
  if (with_events)
    if (std::string events = last_lines(batch_log(run.directory), kLastEvents); !events.empty()) {
      if (events.back() == '\n') events.pop_back();
      say(events);
    }
  say(run.name() + " " + run.outcome());
  say(next_command(run));
  return run.result->code;
}

Error elsewhere(const RunRecord& run) {
  return {ErrorKind::unreachable, "run " + run.name() + " is on host " + run.host() +
                                      ", and its console listens only there; try: ssh -t " + run.host() +
                                      " " + typed_command(run)};
}

Result<int> attach(const std::string& name, const std::string& role) {
  std::setlocale(LC_CTYPE, "");
  const auto run = find_run(name, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  if (run->life != Life::live) return outcome(*run, /*with_events=*/true);
  if (run->elsewhere()) return tl::unexpected(elsewhere(*run));
  Attachment::Options options;
  options.role = role;
  return attach_to(*run, std::move(options));
}

}  // namespace

Result<int> attach_to(const RunRecord& run, Attachment::Options options) {
  std::setlocale(LC_CTYPE, "");
  Attachment::End end{};
  Error error;
  {
    Attachment attachment(run, std::move(options));
    end = attachment.run();
    error = attachment.error();
  }
  const auto now = read_run(run.directory);
  switch (end) {
    case Attachment::End::failed:
      return static_cast<int>(exit_code_for(error.kind));  // it has been shown
    case Attachment::End::unreachable:
      return tl::unexpected(error.message.empty() ? not_live(run) : error);
    case Attachment::End::not_started:
      return explain_end(run.name(), run.directory);
    case Attachment::End::run_over:
      if (read_refused_start(run.directory)) return explain_end(run.name(), run.directory);
      return now ? outcome(*now, /*with_events=*/false) : tl::unexpected(now.error());
    case Attachment::End::detached:
      break;
  }
  if (::isatty(STDOUT_FILENO) == 1)
    say("detached; " + run.name() + " goes on · back to it: footplate attach " + run.name() +
        " · its end: footplate stop " + run.name());
  return 0;
}

Handler declare_attach(CLI::App& command) {
  auto run = std::make_shared<std::string>();
  auto role = std::make_shared<std::string>();
  command.add_option("RUN", *run, "name or path; left out: the only live run, else the newest");
  command.add_option("--role", *role, "what this session may do: view, operate or admin")
      ->check(CLI::IsMember({"view", "operate", "admin"}));
  return with_via(
      command, [run]() -> const std::string& { return *run; }, [=] { return attach(*run, *role); });
}

}  // namespace footplate
