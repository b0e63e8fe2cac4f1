#pragma once

#include <chrono>
#include <string>

namespace footplate {

/// "2026-11-20T19:30:00.123Z": how times are written in files and on the wire. UTC.
std::string iso_time(std::chrono::system_clock::time_point time);

/// The same to the second: for people.
std::string iso_seconds(std::chrono::system_clock::time_point time);

}  // namespace footplate
