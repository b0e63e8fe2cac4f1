#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/data/corpus_identity.h"

namespace footplate {

/// Recordings of one rate, all of them in memory, sorted by path. Every tenth is held out as a whole, of
/// fewer than ten the last one. Any thread.
class Recordings {
 public:
  /// `name`: "speech" (Debian's package asterisk-core-sounds-en-wav, 568 recordings of 8 kHz, 25 minutes), or
  /// the path of a folder: all files below it that end in .wav. `rate`: samples a second that each has to
  /// have. Errors (usage): there is no such folder, fewer than two recordings, what read_wav() says, another
  /// rate; with the file, what is wrong and what is allowed.
  static Result<Recordings> open(const std::string& name, std::int64_t rate);

  std::size_t count() const { return starts_.size() - 1; }
  bool is_held_out(std::size_t recording) const;
  std::span<const std::int16_t> samples(std::size_t recording) const;
  const std::filesystem::path& path(std::size_t recording) const { return paths_[recording]; }
  /// Of the samples and of where recordings begin, not of the names.
  CorpusIdentity identity() const;

 private:
  Recordings(std::filesystem::path folder, std::vector<std::filesystem::path> paths)
      : folder_(std::move(folder)), paths_(std::move(paths)) {}
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::int16_t> samples_;
  std::vector<std::uint64_t> starts_{0};  ///< in samples_; the last one is its end
};

}  // namespace footplate
