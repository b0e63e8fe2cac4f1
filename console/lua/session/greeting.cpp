#include "console/lua/session/greeting.h"

namespace footplate::lua {
namespace {

Result<Kind> kind_from_string(const std::string& text) {
  if (text == "session") return Kind::session;
  if (text == "job") return Kind::job;
  if (text == "rules") return Kind::rules;
  if (text == "check") return Kind::check;
  return fail(ErrorKind::failed, "unknown kind of session '" + text + "'");
}

}  // namespace

Result<Greeting> Greeting::from_json(const Json& hello) {
  try {
    auto schema = Schema::from_json(hello.at("schema"));
    if (!schema) return tl::unexpected(schema.error());
    auto settings = Settings::from_json(hello.at("settings"), *schema);
    if (!settings) return tl::unexpected(settings.error());
    const auto role = role_from_string(hello.value("role", "admin"));
    if (!role) return tl::unexpected(role.error());
    const Json given = hello.value("limits", Json::object());
    Limits limits;
    limits.chunk = std::chrono::duration<double>(given.value("chunk_s", limits.chunk.count()));
    limits.burst = std::chrono::duration<double>(given.value("idle_cpu_s", limits.burst.count()));
    limits.memory_bytes = given.value("memory_bytes", limits.memory_bytes);
    limits.output_bytes = given.value("output_bytes", limits.output_bytes);
    const auto kind = kind_from_string(hello.value("kind", "session"));
    if (!kind) return tl::unexpected(kind.error());
    return Greeting{*std::move(schema),
                    *std::move(settings),
                    hello.value("run", Json::object()),
                    hello.value("session", ""),
                    hello.value("user", ""),
                    *role,
                    limits,
                    *kind,
                    hello.value("arguments", std::vector<std::string>{}),
                    hello.value("resumed", false)};
  } catch (const Json::exception& error) {
    return fail(ErrorKind::failed, std::string("malformed hello from the console: ") + error.what());
  }
}

}  // namespace footplate::lua
