#include "runtime/state/level_state.h"

#include <cstddef>
#include <vector>

#include "runtime/comm/agree.h"

namespace footplate {

Result<Json> level_state(Communicator& communicator, const StateTable& state, int source,
                         const Json& others) {
  const auto theirs = from_rank(communicator, source, to_line(others));
  if (!theirs) return tl::unexpected(theirs.error());
  const bool gives = communicator.rank() == source;
  std::vector<std::byte> room;
  for (const StateEntry& entry : state.entries()) {
    if (entry.placement != Placement::replicated) continue;
    void* data = entry.data;
    if (entry.memory != nullptr) {
      room.resize(entry.bytes);
      if (gives) entry.on_host(room);
      data = room.data();
    }
    const Buffer buffer{data, static_cast<std::int64_t>(entry.bytes), DataType::uint8};
    if (auto sent = communicator.broadcast(buffer, source, "levelling")->wait(); !sent)
      return tl::unexpected(sent.error());
    if (entry.memory != nullptr && !gives) entry.take(room);
  }
  return Json::parse(*theirs);
}

}  // namespace footplate
