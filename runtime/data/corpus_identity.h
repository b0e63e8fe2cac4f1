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
  std::uint64_t hash = 0;   ///< as of corpus_hash()

  std::string hash_text() const;  ///< 16 hexadecimal digits
  std::string text() const;       ///< for people: "/data/mine.txt (4404412 bytes, hash …)"
};

/// Up to this size all of a text is hashed: 15 ms of a rank's start; kjv takes 1 ms, python 3.
inline constexpr std::size_t kHashedWhole = std::size_t{64} << 20;

/// XXH3 of the whole text, else of 64 evenly spaced samples of 64 KiB, the first and the last bytes among
/// them; and of its size. Reading a terabyte would hold a start up; one that was cut short, or is of another
/// day, differs all the same.
std::uint64_t corpus_hash(std::span<const std::uint8_t> text);

}  // namespace footplate
