#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/rank_set.h"

/// What goes between the ranks of a tree (tree_channel.h), around control's messages. `layout` numbers the
/// layouts of one world: what belongs to an earlier one is void.
namespace footplate::tree {

using Bytes = std::vector<std::uint8_t>;

/// From rank 0 to all: passed on to one's children, then taken in the order of the numbers.
struct Down {
  std::uint64_t layout = 0;
  std::uint64_t number = 0;  ///< 1 is the first of a world
  Bytes bytes;
};
/// What these ranks say to rank 0, all the same.
struct Said {
  RankSet by;
  Bytes bytes;
};
/// To one's parent.
struct Up {
  std::uint64_t layout = 0;
  std::vector<Said> said;  ///< each rank's in the order sent
};
/// To one's parent: alive, and what is known of those below.
struct Sign {
  std::uint64_t layout = 0;
  std::uint64_t taken = 0;  ///< of Down, by this rank and by those below at least
  Silences silent = {};
  std::vector<std::pair<int, Bytes>> beats = {};  ///< what ranks send quietly
};
/// From rank 0 to one rank, or from a rank to rank 0, past the tree.
struct Direct {
  Bytes bytes;
};
/// From rank 0 to each rank, past the tree: the layout is another one now.
struct Relaid {
  std::uint64_t layout = 0;
  std::uint64_t received = 0;  ///< of what this rank has said
  std::vector<int> leaves;
};
/// The answer, past the tree: rank 0 sends this rank what it has missed.
struct Settled {
  std::uint64_t layout = 0;
  std::uint64_t taken = 0;  ///< of Down
  std::uint64_t lost = 0;   ///< of what it has said: rank 0 hasn't received it, and it can't be said again
};
/// To rank 0, past the tree: this rank ends.
struct Left {};

using Word = std::variant<Down, Up, Sign, Direct, Relaid, Settled, Left>;

MessageBytes encoded(const Word& word);
/// Nothing: it is none of a world of that size.
std::optional<Word> decoded(std::span<const std::uint8_t> bytes, int world_size);

}  // namespace footplate::tree
