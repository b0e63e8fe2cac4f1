#include "console/lua/program/script_check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "console/lua/api/catalogue.h"
#include "console/lua/program/script_check_json.h"
#include "console/lua/session/session.h"

namespace footplate::lua {
namespace {

/// A run that is about to begin: nothing logged, nothing ordered. Actions and assignments go no further.
class NoRun final : public ConsoleLink {
 public:
  Result<Json> ask(std::string_view op, Json /*fields*/, const Note& /*note*/,
                   std::optional<Time> /*left*/) override {
    constexpr std::array<std::string_view, 5> kLists = {request::Orders::kOp, request::Rules::kOp,
                                                        request::Jobs::kOp, request::Pending::kOp,
                                                        request::Checkpoints::kOp};
    if (std::ranges::find(kLists, op) != kLists.end()) return Json::array();
    if (op == request::Journal::kOp) return Json("");
    return Json::object();  // a status, too: it is about to start
  }
  void output(std::string_view /*text*/, OutputStream /*stream*/) override {}
  bool interrupted() override { return false; }
  void clear_interrupt() override {}
};

CheckedScript check_script(const ScriptsToCheck& given, const ScriptToCheck& script) {
  SessionHello hello;
  hello.schema = given.schema;
  hello.settings = given.settings;
  hello.user = given.user;
  hello.kind = SessionKind::check;
  hello.arguments = script.arguments;
  hello.run.name = "check";
  hello.script = script.path;
  auto greeting = Greeting::from(hello);
  if (!greeting) return {script.path, std::nullopt, greeting.error()};
  NoRun none;
  Session session(*std::move(greeting), none, open_names);
  Checked found = session.check(script.code, script.path);
  return {script.path, ScriptFindings{std::move(found.rules), found.order, found.waits}, found.outcome.error};
}

}  // namespace

int check_scripts() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const Json given = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    std::fputs("footplate-lua --check: expects a JSON object on stdin\n", stderr);
    return 2;
  }
  ScriptsToCheck wanted;
  if (const auto read = read_json(given, wanted); !read) {
    std::fprintf(stderr, "footplate-lua --check: %s\n", read.error().message.c_str());
    return 2;
  }
  // What a script writes to its own output is not among what was found.
  std::FILE* found = ::fdopen(::dup(STDOUT_FILENO), "w");
  if (found == nullptr || std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  for (const ScriptToCheck& script : wanted.scripts)
    std::fputs(to_line(to_json(check_script(wanted, script))).c_str(), found);
  return std::fclose(found) == 0 ? 0 : 1;
}

}  // namespace footplate::lua
