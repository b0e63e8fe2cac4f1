// footplate-lua: one session's Lua, at the other end of descriptor 3 from the console. docs/lua.md has the
// API.

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "console/lua/api/catalogue.h"
#include "console/lua/program/script_check.h"
#include "console/lua/session/idle_priority.h"
#include "console/lua/session/session.h"
#include "console/lua/session/wire.h"

namespace footplate::lua {
namespace {

constexpr int kConsole = 3;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitAddressSpace = false;  // sanitizers map terabytes
#else
constexpr bool kLimitAddressSpace = true;
#endif

/// What holds even where a script has broken out of the interpreter's own limits.
void limit_process(const Limits& limits, SessionKind kind) {
  constexpr std::size_t kBesidesLua = 256U * 1024 * 1024;  // code, stacks, buffers of messages
  mallopt(M_ARENA_MAX, 1);  // an arena per thread would reserve 64 MiB of address space for each chunk
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // A job's is the owner's; what it starts (Python, Java) would have the limit, too.
  if (kind == SessionKind::job) return;
  const rlimit space{limits.memory_bytes + kBesidesLua, limits.memory_bytes + kBesidesLua};
  if (kLimitAddressSpace) setrlimit(RLIMIT_AS, &space);
}

std::size_t line_size(const FromSession& message) {
  return to_line(to_json(message)).size();
}

/// A result that fits a line: first without its data, then with less text.
ChunkResult fitting(ChunkResult result) {
  constexpr std::size_t kAlwaysFits = 128U * 1024;
  if (line_size(result) > kMaxFrameBytes) result.value = nullptr;
  if (line_size(result) > kMaxFrameBytes) result.text = result.text.substr(0, kAlwaysFits) + "\n… cut here";
  return result;
}

/// `told`: what programs get with it, also with an error.
FromSession answer_for(const Json& id, const Outcome& outcome, Json told) {
  if (outcome.error) return ChunkError{id, *outcome.error, outcome.error_line, std::move(told), false};
  return fitting({id, outcome.text, std::move(told)});
}

FromSession answer(const EvalChunk& chunk, Session& session) {
  const std::chrono::duration<double> timeout(chunk.timeout_s);
  const Outcome outcome = session.evaluate(chunk.code, chunk.name, timeout, chunk.asks);
  return answer_for(chunk.id, outcome, outcome.error ? Json() : outcome.value);
}

FromSession answer(const RegisterChunk& chunk, Session& session) {
  const Registered found = session.register_chunk(chunk.chunk, chunk.code, chunk.name);
  if (found.outcome.error) return answer_for(chunk.id, found.outcome, {});
  Json rules = Json::array();
  for (const RuleSpec& rule : found.rules) rules.push_back(to_json(rule));
  return answer_for(chunk.id, found.outcome, {{"rules", std::move(rules)}});
}

FromSession answer(const HandleRule& rule, Session& session) {
  const Handled handled = session.handle(rule);
  return answer_for(rule.id, handled.outcome, handled.ran_ms ? Json{{"ran_ms", *handled.ran_ms}} : Json());
}

void handle(const HandleRule& rule, Session& session, Wire& wire) {
  wire.send(HandlingRule{rule.id});
  wire.send(answer(rule, session));
}

void perform(const Wire::Task& task, Session& session, Wire& wire) {
  if (const auto* rule = std::get_if<HandleRule>(&task)) return handle(*rule, session, wire);
  wire.send(std::visit([&](const auto& one) { return answer(one, session); }, task));
}

/// The session loop: read, evaluate, print.
int run() {
  ::fcntl(kConsole, F_SETFD, FD_CLOEXEC);  // not for what a job starts: the console is to see this one's end
  Wire wire(kConsole);
  auto greeting = Greeting::from(wire.hello());
  if (!greeting) {
    std::fprintf(stderr, "footplate-lua: %s\n", greeting.error().message.c_str());
    return 1;
  }
  limit_process(greeting->limits, greeting->kind);
  Allowance allowance(greeting->limits.burst);
  Session session(*std::move(greeting), wire, open_names);
  wire.on_settings = [&](const SettingsUpdate& update) { session.settings_changed(update); };
  wire.on_handle = [&](const HandleRule& rule) { handle(rule, session, wire); };
  for (;;) {
    const Wire::Task task = wire.next();
    std::thread([&] {
      const Allowance::Watch watch(allowance);
      perform(task, session, wire);
    }).join();
  }
}

}  // namespace
}  // namespace footplate::lua

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a script stuck in C code wouldn't see the console's end
  if (count == 2 && std::string_view(arguments[1]) == "--check") {
    footplate::lua::limit_process({}, footplate::SessionKind::check);
    return footplate::lua::check_scripts();
  }
  return footplate::lua::run();
}
