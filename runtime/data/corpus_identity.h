#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace footplate {

/// What tells one corpus from another, on other hosts and in later starts. Any thread.
struct CorpusIdentity {
  std::string path;         ///< where this process reads it
  std::uint64_t bytes = 0;  ///< 0: there is none (run.task = "synthetic")
  std::uint64_t hash = 0;   ///< as of corpus_hash(); 0: not known
  std::string sets = {};    ///< how much each data set has: "digits: 1500 samples to train on, 297 held out"

  std::string hash_text() const;  ///< 16 hexadecimal digits
  std::string text() const;       ///< for people: "/data/mine.txt (4404412 bytes, hash …)"

  /// What is to be the same on all ranks: all of it but the path. Of `hash` alone a task may tell nothing.
  std::uint64_t ranks_hash() const;
  std::string ranks_hash_text() const;  ///< 16 hexadecimal digits
  std::string of_ranks() const;         ///< for people: text(), and how much there is
};

/// Up to this size all of a text is hashed: 15 ms of a rank's start; kjv takes 1 ms, python 3.
inline constexpr std::size_t kHashedWhole = std::size_t{64} << 20;

/// XXH3 of the whole text, else of 64 evenly spaced samples of 64 KiB, the first and the last bytes among
/// them; and of its size. Reading a terabyte would hold a start up; one that was cut short, or is of another
/// day, differs all the same.
std::uint64_t corpus_hash(std::span<const std::uint8_t> text);

}  // namespace footplate
