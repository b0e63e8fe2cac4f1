#include "runtime/control/control_channel.h"

#include <utility>

#include "runtime/base/times.h"
#include "runtime/comm/tree/tree_channel.h"
#include "runtime/watch/merged_messages.h"

namespace footplate {

std::unique_ptr<MessageChannel> make_control_channel(std::unique_ptr<MessageChannel> direct,
                                                     const Settings& settings) {
  const ControlTimes times;
  return make_tree_channel(std::move(direct), {.fan_out = static_cast<int>(settings.integer("comm.fan_out")),
                                               .merge = merged,
                                               .heartbeat = times.heartbeat,
                                               .stalled = times.stalled});
}

}  // namespace footplate
