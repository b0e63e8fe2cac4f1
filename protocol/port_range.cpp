#include "protocol/port_range.h"

#include <charconv>
#include <string_view>

namespace footplate {
namespace {

/// Those below are the system's.
constexpr int kLowest = 1024, kHighest = 65535;

/// For the daemon of mpirun, and of each of some ranks one port of Open MPI's and two of ours.
constexpr int kFewest = 16;

std::optional<int> port(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < kLowest || value > kHighest) return std::nullopt;
  return value;
}

}  // namespace

Result<std::optional<PortRange>> parse_ports(const std::string& text) {
  if (text.empty()) return std::optional<PortRange>();
  const auto dash = text.find('-');
  const auto first = port(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? std::nullopt : port(std::string_view(text).substr(dash + 1));
  if (!first || !last || *last - *first + 1 < kFewest)
    return fail(ErrorKind::usage, "comm.ports: '" + text +
                                      "' is no range of ports; one is written 20000-20063, from " +
                                      std::to_string(kLowest) + " to " + std::to_string(kHighest) + ", of " +
                                      std::to_string(kFewest) + " ports or more");
  return std::optional(PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)});
}

}  // namespace footplate
