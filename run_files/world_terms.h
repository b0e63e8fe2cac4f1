#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace footplate {

/// What became of a claim.
enum class Claim {
  claimed,
  left_out,  ///< another world has claimed the term, without this rank
  no_disk    ///< nothing is known
};

/// Who goes on, where the hosts of a run lose each other: either side could. Before a new world of ranks does
/// anything, its rank 0 claims a term, a file terms/START-N.json of the run directory that can be made once.
/// Both sides would claim the same number; the side that comes second finds itself left out, and ends.
/// Ranks are named by origin. Any thread; reads and writes the disk.
class WorldTerms {
 public:
  WorldTerms(std::filesystem::path run_directory, int start)
      : directory_(std::move(run_directory)), start_(start) {}

  /// Whether the newest term has this rank; true where there is none: all ranks of the start.
  bool includes(int origin) const;
  /// The same of a host.
  bool has_host(const std::string& host) const;

  /// For a world of `members` on these hosts, `mine` among them.
  Claim claim(int mine, const std::vector<int>& members, const std::vector<std::string>& hosts) const;

 private:
  struct Term {
    int number = 0;  ///< 0: none yet
    std::vector<int> members;
    std::vector<std::string> hosts;
  };
  /// Nothing: its folder can't be read.
  std::optional<Term> newest() const;

  std::filesystem::path directory_;
  int start_;
};

/// As a start begins: those of the starts before it.
void forget_terms(const std::filesystem::path& run_directory);

}  // namespace footplate
