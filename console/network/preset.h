#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "console/network/network.h"
#include "protocol/json.h"
#include "protocol/result.h"

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

/// "infiniband", "ethernet", "pcie", "nvlink", "conservative" on a host with this network. Sets nothing that
/// `is_set` says somebody has set. Only "conservative" switches anything off. Errors (usage): no such preset.
/// Pure.
Result<Preset> nccl_preset(std::string_view name, const NetworkReading& network,
                           const std::function<bool(const std::string& setting)>& is_set);

}  // namespace footplate
