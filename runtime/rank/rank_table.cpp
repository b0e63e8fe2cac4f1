#include "runtime/rank/rank_table.h"

namespace footplate {

Json rank_table(const MpiSession& session, const std::map<int, std::int64_t>& pids) {
  Json ranks = Json::array();
  for (int rank = 0; rank < session.world_size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    ranks.push_back(
        {{"rank", rank}, {"host", session.hosts()[at]}, {"pid", pids.at(session.members().origins[at])}});
  }
  return ranks;
}

}  // namespace footplate
