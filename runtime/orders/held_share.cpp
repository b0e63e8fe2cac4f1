#include "runtime/orders/held_share.h"

#include <map>
#include <set>

namespace footplate {

int whole_division(const std::vector<HeldShare>& held) {
  std::map<int, std::set<int>> shares;  // by division
  for (const HeldShare& one : held) shares[one.of].insert({one.share, one.copied});
  for (const auto& [of, there] : shares)
    if (static_cast<int>(there.size()) == of) return of;
  return 0;
}

}  // namespace footplate
