#include "protocol/iso_time.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace footplate {
namespace {

/// "2026-11-20T19:30:00", without the zone.
std::string utc_text(std::chrono::sys_seconds seconds) {
  const std::time_t time = seconds.time_since_epoch().count();
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 40> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc));
}

}  // namespace

std::string iso_time(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time) - seconds;
  std::array<char, 8> tail{};
  std::snprintf(tail.data(), tail.size(), ".%03dZ", static_cast<int>(ms.count()));
  return utc_text(seconds) + tail.data();
}

std::string iso_seconds(std::chrono::system_clock::time_point time) {
  return utc_text(std::chrono::floor<std::chrono::seconds>(time)) + "Z";
}

}  // namespace footplate
