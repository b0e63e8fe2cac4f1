#pragma once

#include <chrono>
#include <memory>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/tree/joint_messages.h"

namespace footplate {

struct TreeOptions {
  /// How many ranks one passes messages on to.
  int fan_out = 32;
  MergeMessages merge;
  /// Between two signs of life of a rank, and how long after the last one it is silent (base/times.h).
  std::chrono::milliseconds heartbeat{600};
  std::chrono::milliseconds stalled{900};
};

/// Rank 0 and the others speak over `direct` through a tree of the ranks (tree_layout.h), so that each sends
/// to and hears of few: what rank 0 sends to all is passed on, what the ranks answer is put together on its
/// way, and each hears of its children's life. Up to `fan_out` + 1 ranks there is no tree, and messages are
/// those of `direct`.
///
/// Nothing is lost where a rank stops that others are below: rank 0 has all ranks take another layout, in
/// which that one passes nothing on, and each side sends again what the other one hasn't got.
std::unique_ptr<MessageChannel> make_tree_channel(std::unique_ptr<MessageChannel> direct,
                                                  TreeOptions options);

}  // namespace footplate
