// footplate-lua: one session's Lua, at the other end of descriptor 3 from the console. docs/lua.md has the
// API.

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>

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
void limit_process(const Limits& limits, Kind kind) {
  constexpr std::size_t kBesidesLua = 256U * 1024 * 1024;  // code, stacks, buffers of messages
  mallopt(M_ARENA_MAX, 1);  // an arena per thread would reserve 64 MiB of address space for each chunk
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (kind == Kind::job) return;  // the owner's; what it starts (Python, Java) would have the limit, too
  const rlimit space{limits.memory_bytes + kBesidesLua, limits.memory_bytes + kBesidesLua};
  if (kLimitAddressSpace) setrlimit(RLIMIT_AS, &space);
}

/// A result that fits a line: first without its data, then with less text.
Json result_for(const Outcome& outcome, const Json& id) {
  Json result = {
      {"type", "result"}, {"id", id}, {"value", {{"text", outcome.text}, {"value", outcome.value}}}};
  constexpr std::size_t kAlwaysFits = 128U * 1024;
  if (to_line(result).size() > kMaxFrameBytes) result["value"]["value"] = nullptr;
  if (to_line(result).size() > kMaxFrameBytes)
    result["value"]["text"] = outcome.text.substr(0, kAlwaysFits) + "\n… cut here";
  return result;
}

Json answer_for(const Outcome& outcome, const Json& id) {
  if (!outcome.error) return result_for(outcome, id);
  Json error = to_json(*outcome.error);
  if (outcome.error_line) error["line"] = *outcome.error_line;
  Json answer = {{"type", "error"}, {"id", id}, {"error", error}};
  if (outcome.value.is_object()) answer["value"] = outcome.value;
  return answer;
}

void handle(const Json& request, Session& session, Wire& wire) {
  const Json id = request.value("id", Json());
  wire.send({{"type", "handling"}, {"id", id}});
  wire.send(answer_for(session.handle(request), id));
}

void answer(const Json& request, Session& session, Wire& wire) {
  const std::string type = request.value("type", "");
  const Json id = request.value("id", Json());
  const std::string code = request.value("code", "");
  const std::string name = request.value("name", "chunk");
  if (type == "handle") return handle(request, session, wire);
  if (type == "register")
    return wire.send(
        answer_for(session.register_chunk(request.value("chunk", std::int64_t{0}), code, name), id));
  const std::chrono::duration<double> timeout(request.value("timeout_s", 30.0));
  wire.send(answer_for(session.evaluate(code, name, timeout, request.value("asks", false)), id));
}

/// The session loop: read, evaluate, print.
int run() {
  ::fcntl(kConsole, F_SETFD, FD_CLOEXEC);  // not for what a job starts: the console is to see this one's end
  Wire wire(kConsole);
  auto greeting = Greeting::from_json(wire.next());
  if (!greeting) {
    std::fprintf(stderr, "footplate-lua: %s\n", greeting.error().message.c_str());
    return 1;
  }
  limit_process(greeting->limits, greeting->kind);
  Allowance allowance(greeting->limits.burst);
  Session session(*std::move(greeting), wire, open_names);
  wire.on_settings = [&](const Json& settings) { session.settings_changed(settings); };
  wire.on_handle = [&](const Json& request) { handle(request, session, wire); };
  for (;;) {
    const Json request = wire.next();
    wire.set_eval(request.value("id", Json()));
    std::thread([&] {
      const Allowance::Watch watch(allowance);
      answer(request, session, wire);
    }).join();
  }
}

}  // namespace
}  // namespace footplate::lua

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a script stuck in C code wouldn't see the console's end
  if (count == 2 && std::string_view(arguments[1]) == "--check") {
    footplate::lua::limit_process({}, footplate::lua::Kind::check);
    return footplate::lua::check_scripts();
  }
  return footplate::lua::run();
}
