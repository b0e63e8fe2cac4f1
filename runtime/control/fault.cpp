#include "runtime/control/fault.h"

#include <charconv>
#include <cstdlib>

namespace footplate {
namespace {

/// Cuts `text` at the first `separator`: what is before it; `text` keeps what is behind.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

}  // namespace

std::optional<std::int64_t> Fault::get(std::string_view name) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  return found->second;
}

bool Fault::matches(std::string_view name, std::int64_t value) const {
  const auto wanted = get(name);
  return !wanted || *wanted == value;
}

std::optional<Fault> find_fault(std::string_view faults, std::string_view kind, int rank) {
  while (!faults.empty()) {
    std::string_view one = take(faults, ',');
    if (take(one, ':') != kind) continue;
    Fault fault;
    while (!one.empty()) {
      std::string_view parameter = take(one, ':');
      const std::string_view name = take(parameter, '=');
      std::int64_t value = 1;
      std::from_chars(parameter.data(), parameter.data() + parameter.size(), value);
      fault.parameters[std::string(name)] = value;
    }
    if (fault.matches("rank", rank)) return fault;
  }
  return std::nullopt;
}

std::optional<Fault> fault(std::string_view kind, int rank) {
  const char* faults = std::getenv("FOOTPLATE_FAULT");
  if (faults == nullptr) return std::nullopt;
  return find_fault(faults, kind, rank);
}

}  // namespace footplate
