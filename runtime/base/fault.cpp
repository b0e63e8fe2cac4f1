#include "runtime/base/fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "protocol/schema.h"

namespace footplate {
namespace {

struct Kind {
  const char* name;
  const char* parameters;  ///< besides rank, separated by blanks
};

constexpr std::array kKinds{
    Kind{"refuse", "order"},
    Kind{"eval_throw", "above tries"},
    Kind{"eval_stall", "ms try"},
    Kind{"eval_absent", "ms"},
    Kind{"eval_nan", ""},
    Kind{"step_throw", "step"},
    Kind{"step_oom", "above step"},
    Kind{"save_fail", "times"},
    Kind{"save_hold", ""},
    Kind{"save_no_copy", ""},
    Kind{"save_die", ""},
    Kind{"nan_grad", "step times"},
    Kind{"nan_loss", "step times"},
    Kind{"reduce_late", "step ms"},
    Kind{"odd_reduce", "step"},
    Kind{"flip_bit", "step"},
    Kind{"late_start", "ms"},
    Kind{"late_choice", "ms"},
    Kind{"start_hang", "mpi"},
    Kind{"start_die", "mpi"},
    Kind{"clock", "s"},
    Kind{"device_error", "step"},
    Kind{"mpi_untold", ""},
};

/// Cuts `text` at the first `separator`: what is before it; `text` keeps what is behind.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Error no_such(const std::string& what, std::string_view name, const std::vector<std::string>& allowed) {
  const std::string close = nearest(name, allowed);
  return {ErrorKind::usage, "FOOTPLATE_FAULT: no " + what + " '" + std::string(name) + "'" +
                                (close.empty() ? "" : "; did you mean '" + close + "'?") +
                                "; there is: " + joined(allowed)};
}

std::vector<std::string> parameters_of(const Kind& kind) {
  std::vector<std::string> names{"rank"};
  std::string_view rest = kind.parameters;
  while (!rest.empty()) names.emplace_back(take(rest, ' '));
  return names;
}

/// "rank=1", of a fault of this kind.
Result<void> check_parameter(const Kind& kind, std::string_view parameter) {
  const auto allowed = parameters_of(kind);
  const std::string_view name = take(parameter, '=');
  if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
    return tl::unexpected(no_such(std::string("parameter of ") + kind.name, name, allowed));
  std::int64_t value = 0;
  const char* const end = parameter.data() + parameter.size();
  if (const auto read = std::from_chars(parameter.data(), end, value);
      read.ec != std::errc() || read.ptr != end)
    return fail(ErrorKind::usage, "FOOTPLATE_FAULT: " + std::string(kind.name) + ":" + std::string(name) +
                                      " needs an integer, got '" + std::string(parameter) + "'");
  return {};
}

}  // namespace

Result<void> check_faults() {
  const char* faults = std::getenv("FOOTPLATE_FAULT");
  return check_faults(faults == nullptr ? "" : faults);
}

Result<void> check_faults(std::string_view faults) {
  while (!faults.empty()) {
    std::string_view one = take(faults, ',');
    const std::string_view name = take(one, ':');
    const auto kind =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& it) { return it.name == name; });
    if (kind == kKinds.end()) {
      std::vector<std::string> names;
      for (const Kind& it : kKinds) names.emplace_back(it.name);
      return tl::unexpected(no_such("fault", name, names));
    }
    while (!one.empty())
      if (auto good = check_parameter(*kind, take(one, ':')); !good) return good;
  }
  return {};
}

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
  if (faults == nullptr || !check_faults(faults)) return std::nullopt;
  return find_fault(faults, kind, rank);
}

}  // namespace footplate
