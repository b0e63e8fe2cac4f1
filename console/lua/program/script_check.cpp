#include "console/lua/program/script_check.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "console/lua/api/catalogue.h"
#include "console/lua/session/session.h"

namespace footplate::lua {
namespace {

/// A run that is about to begin: nothing logged, nothing ordered. Actions and assignments go no further.
class NoRun final : public ConsoleLink {
 public:
  Result<Json> ask(std::string_view op, Json /*fields*/, const Note& /*note*/) override {
    if (op == "status") return Json{{"state", "starting"}, {"step", 0}, {"ranks", Json::array()}};
    if (op == "metrics" || op == "store") return Json::object();
    if (op == "orders" || op == "rules" || op == "jobs" || op == "pending") return Json::array();
    if (op == "journal") return Json("");
    return Json::object();
  }
  void output(std::string_view /*text*/, Stream /*stream*/) override {}
  bool interrupted() override { return false; }
  void clear_interrupt() override {}
};

Json check_script(const Json& given, const Json& script) {
  const std::string path = script.value("path", "script");
  Json hello = given;
  hello["kind"] = "check";
  hello["arguments"] = script.value("arguments", Json::array());
  hello["run"] = {{"name", "check"}, {"script", path}};
  auto greeting = Greeting::from_json(hello);
  if (!greeting) return {{"path", path}, {"error", to_json(greeting.error())}};
  NoRun none;
  Session session(*std::move(greeting), none, open_names);
  const Outcome outcome = session.check(script.value("code", ""), path);
  Json found = outcome.value;
  found["path"] = path;
  if (outcome.error) found["error"] = to_json(*outcome.error);
  return found;
}

}  // namespace

int check_scripts() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const Json given = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    std::fputs("footplate-lua --check: expects a JSON object on stdin\n", stderr);
    return 2;
  }
  // What a script writes to its own output is not among what was found.
  std::FILE* found = ::fdopen(::dup(STDOUT_FILENO), "w");
  if (found == nullptr || std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  for (const Json& script : given.value("scripts", Json::array()))
    std::fputs(to_line(check_script(given, script)).c_str(), found);
  return std::fclose(found) == 0 ? 0 : 1;
}

}  // namespace footplate::lua
