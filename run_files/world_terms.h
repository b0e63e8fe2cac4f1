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

/// The ranks that are in a run, and where.
struct WorldMembers {
  std::vector<int> origins;               ///< of the ranks
  std::vector<std::string> hosts;         ///< that they are on
  std::vector<std::string> lost_hosts{};  ///< that were declared lost since the start began
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

  /// For a world with the rank `mine`.
  Claim claim(int mine, const WorldMembers& world) const;
  /// The start is over: no rank has a term any more, whoever claims one. `host`: where `footplate run` is.
  void close(const std::string& host) const;

  struct Term {
    int number = 0;  ///< 0: none yet
    WorldMembers world;
  };
  /// Nothing: its folder can't be read.
  std::optional<Term> newest() const;
  /// The one with that number. Nothing: there is none, or it can't be read.
  std::optional<Term> read(int number) const;

 private:
  /// 0, or errno: EEXIST where there is one with that number.
  int make(int number, const WorldMembers& world) const;

  std::filesystem::path directory_;
  int start_;
};

/// As a start begins: those of the starts before it.
void forget_terms(const std::filesystem::path& run_directory);

}  // namespace footplate
