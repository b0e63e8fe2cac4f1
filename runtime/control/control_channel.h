#pragma once

#include <memory>

#include "protocol/settings.h"
#include "runtime/comm/message_channel.h"

namespace footplate {

/// What control speaks over: the ranks of a large world through a tree (runtime/comm/tree/tree_channel.h), by
/// the settings of the start.
std::unique_ptr<MessageChannel> make_control_channel(std::unique_ptr<MessageChannel> direct,
                                                     const Settings& settings);

}  // namespace footplate
