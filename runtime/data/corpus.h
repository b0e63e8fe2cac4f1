#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "protocol/result.h"
#include "runtime/data/corpus_identity.h"
#include "runtime/data/mapped_file.h"

namespace footplate {

/// A text as bytes, memory-mapped. The first 90 % are for training, the last 10 % held out.
class Corpus {
 public:
  /// `name` is "kjv" (the King James Bible, as Debian's `bible -f gen1:1-rev22:21` prints it, verse
  /// references included), "python" (the standard library's sources), or the path of a file or folder
  /// (all regular files below it, sorted by path; hidden ones left out).
  ///
  /// Named corpora and folders are put together once into a file under $FOOTPLATE_CACHE or
  /// ~/.cache/footplate/data; any number of processes may do so at once. Errors: not there, or a
  /// device, with what to install or which names exist (usage); a file that can't be read or changes, a full
  /// disk (failed).
  static Result<Corpus> open(const std::string& name);

  /// Whether open() would find it, as far as that can be seen without putting anything together: its bytes;
  /// none where only open() can know them. Makes and writes nothing. Errors as open()'s, all of them (usage).
  static Result<std::optional<std::uintmax_t>> look(const std::string& name);

  /// Whether what is held out of so many bytes has one sample of `context` tokens, and the token after them.
  /// Error (usage): it is too short, with what would fit.
  static Result<void> check_length(const std::string& name, std::uintmax_t bytes, std::int64_t context);

  std::span<const std::uint8_t> training() const { return file_.bytes().first(split_); }
  std::span<const std::uint8_t> held_out() const { return file_.bytes().subspan(split_); }

  /// Reads all of it, up to kHashedWhole.
  CorpusIdentity identity() const;

 private:
  Corpus(std::string path, MappedFile file);
  std::string path_;
  MappedFile file_;
  std::size_t split_;
};

}  // namespace footplate
