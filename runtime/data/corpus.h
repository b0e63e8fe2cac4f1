#pragma once

#include <cstdint>
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
  /// ~/.cache/footplate/data; any number of processes may do so at once. Errors: not there, with what
  /// to install or which names exist (usage); a file that can't be read or changes, a full disk (failed).
  static Result<Corpus> open(const std::string& name);

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
