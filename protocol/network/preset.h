#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.h"
#include "protocol/network/network.h"
#include "protocol/result.h"
#include "protocol/settings.h"

namespace footplate {

/// What nccl.preset(NAME) sets, and what it has to say about it, a line each.
struct Preset {
  struct Change {
    std::string name;
    Json value;
  };
  std::vector<Change> changes;
  std::vector<std::string> said;
};

/// The settings of a start with what nccl.preset names, on a host with this network: of those that nobody has
/// set, with `nccl.preset = "ethernet"` as their source. For `said` as Preset has it. Only what NCCL reads
/// once in the life of a process: those presets set nothing else.
Settings with_preset(const Schema& schema, Settings settings, const NetworkReading& network,
                     std::vector<std::string>& said);

/// Whether that is where a setting's value comes from.
bool is_preset(const std::string& source);

/// "infiniband", "ethernet", "pcie", "nvlink", "conservative" on a host with this network. Sets nothing that
/// `is_set` says somebody has set. Only "conservative" switches anything off. Errors (usage): no such preset.
/// Pure.
Result<Preset> nccl_preset(std::string_view name, const NetworkReading& network,
                           const std::function<bool(const std::string& setting)>& is_set);

}  // namespace footplate
