#include "run_files/journaled_orders.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace footplate {

std::set<std::uint64_t> journaled_orders(const std::filesystem::path& journal) {
  std::set<std::uint64_t> ids;
  std::ifstream file(journal);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kJournalOrder)) continue;
    std::uint64_t id = 0;
    std::from_chars(line.data() + kJournalOrder.size(), line.data() + line.size(), id);
    if (id != 0) ids.insert(id);
  }
  return ids;
}

std::uint64_t last_journaled_order(const std::filesystem::path& journal) {
  const auto ids = journaled_orders(journal);
  return ids.empty() ? 0 : *ids.rbegin();
}

std::size_t held_by_checkpoint(const std::vector<AppliedAt>& applied, std::uint64_t last, std::int64_t step) {
  if (last == 0) return 0;
  for (std::size_t count = applied.size(); count > 0; --count)
    if (applied[count - 1].id == last) return count;
  const auto after = std::find_if(applied.begin(), applied.end(), [&](const AppliedAt& one) {
    return one.step > step || (one.step == step && one.id > last);
  });
  return static_cast<std::size_t>(after - applied.begin());
}

}  // namespace footplate
