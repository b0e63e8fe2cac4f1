#include "console/host/run/session_limits.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "protocol/schema.h"

namespace footplate::host {
namespace {

struct Name {
  const char* text;
  double Limits::*field;
};

constexpr std::array kNames = {
    Name{"chunk_s", &Limits::chunk_s},
    Name{"kill_s", &Limits::kill_s},
    Name{"idle_cpu_s", &Limits::idle_cpu_s},
    Name{"silent_s", &Limits::silent_s},
    Name{"clients", &Limits::clients},
    Name{"requests", &Limits::requests},
    Name{"chunk_bytes", &Limits::chunk_bytes},
    Name{"output_bytes", &Limits::output_bytes},
    Name{"memory_bytes", &Limits::memory_bytes},
    Name{"unread_bytes", &Limits::unread_bytes},
    Name{"events", &Limits::events},
    Name{"event_bytes", &Limits::event_bytes},
};

}  // namespace

Result<void> Limits::set(std::string_view assignment) {
  const std::string text(assignment);
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::vector<std::string> known;
  for (const Name& item : kNames) {
    known.emplace_back(item.text);
    if (name != item.text) continue;
    char* end = nullptr;
    const double value = equals == std::string::npos ? 0 : std::strtod(text.c_str() + equals + 1, &end);
    if (end == nullptr || *end != '\0' || !std::isfinite(value) || value <= 0)
      return fail(ErrorKind::usage, "--limit " + name + " needs a number above 0, as in " + name + "=0.5");
    this->*item.field = value;
    return {};
  }
  const std::string near = nearest(name, known);
  return fail(ErrorKind::usage,
              "unknown limit '" + name + "'" + (near.empty() ? "" : "; did you mean " + near + "?"));
}

Json Limits::to_json() const {
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value); };
  return {{"frame_bytes", kMaxFrameBytes},
          {"chunk_s", chunk_s},
          {"idle_cpu_s", idle_cpu_s},
          {"chunk_bytes", whole(chunk_bytes)},
          {"output_bytes", whole(output_bytes)},
          {"memory_bytes", whole(memory_bytes)}};
}

SessionLimits Limits::of_session() const {
  SessionLimits limits;
  limits.chunk_s = chunk_s;
  limits.idle_cpu_s = idle_cpu_s;
  limits.memory_bytes = memory_bytes;
  limits.output_bytes = output_bytes;
  return limits;
}

}  // namespace footplate::host
