#include "console/lua/session/greeting.h"

#include <cmath>

namespace footplate::lua {
namespace {

/// Whether `given` takes the place of a default: a finite number that isn't negative.
bool is_limit(double given) {
  return std::isfinite(given) && given >= 0;
}

bool read_seconds(const std::optional<double>& given, std::chrono::duration<double>& limit) {
  if (!given) return true;
  limit = std::chrono::duration<double>(*given);
  return is_limit(*given);
}

bool read_bytes(const std::optional<double>& given, std::size_t& limit) {
  constexpr double kMost = 1e15;
  if (!given) return true;
  if (!is_limit(*given) || *given > kMost) return false;
  limit = static_cast<std::size_t>(*given);
  return true;
}

Result<Limits> limits_of(const SessionLimits& given) {
  Limits limits;
  if (!read_seconds(given.chunk_s, limits.chunk) || !read_seconds(given.idle_cpu_s, limits.burst) ||
      !read_bytes(given.memory_bytes, limits.memory_bytes) ||
      !read_bytes(given.output_bytes, limits.output_bytes))
    return fail(ErrorKind::failed,
                "malformed hello from the console: limits have to be numbers of 0 or more, finite ones");
  return limits;
}

}  // namespace

Result<Greeting> Greeting::from(const SessionHello& hello) {
  auto schema = Schema::from_json(hello.schema);
  if (!schema) return tl::unexpected(schema.error());
  auto settings = Settings::from_json(hello.settings, *schema);
  if (!settings) return tl::unexpected(settings.error());
  const auto role = role_from_string(hello.role);
  if (!role) return tl::unexpected(role.error());
  const auto limits = limits_of(hello.limits);
  if (!limits) return tl::unexpected(limits.error());
  return Greeting{*std::move(schema), *std::move(settings), hello.run,    hello.script,
                  hello.session,      hello.user,           *role,        *limits,
                  hello.kind,         hello.arguments,      hello.resumed};
}

}  // namespace footplate::lua
