#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "protocol/result.h"
#include "runtime/comm/communicator.h"

namespace footplate {

/// Whether there is one, as agree() is told it.
template <class T>
Result<void> outcome_of(const Result<T>& result) {
  if (!result) return tl::unexpected(result.error());
  return {};
}

/// Makes one verdict of every rank's: an error of any rank becomes the same error on all, naming the
/// ranks. Collective; for what happens rarely (a load, a save), as it waits. Error: also where the
/// collective itself fails.
Result<void> agree(Communicator& communicator, const Result<void>& mine);

/// Where all ranks know already that some failed: "rank 1: out of memory; ranks 2, 3: …" out of each
/// rank's `reason` (empty: this rank is well; cut at 500 bytes). One that all have from an agreement before
/// stays as it is. Collective.
Result<std::string> gather_reasons(Communicator& communicator, const std::string& reason);

/// Collective: the text of rank `root`, on all ranks. Of any length.
Result<std::string> from_rank(Communicator& communicator, int root, const std::string& text);

/// Collective: `mine` of every rank, in their order. `what`: how the ledger names the operation.
template <class T>
Result<std::vector<T>> from_all_ranks(Communicator& communicator, T mine, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(communicator.world_size()));
  const Buffer sent{&mine, sizeof(T), DataType::uint8};
  const Buffer received{all.data(), static_cast<std::int64_t>(all.size() * sizeof(T)), DataType::uint8};
  if (auto gathered = communicator.all_gather(sent, received, what)->wait(); !gathered)
    return tl::unexpected(gathered.error());
  return all;
}

/// Collective: the ranks whose hash isn't that of rank 0. `what`: how the ledger names the operation.
Result<std::vector<int>> ranks_with_another(Communicator& communicator, std::uint64_t hash, const char* what);

}  // namespace footplate
