#include "runtime/data/recordings.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <system_error>
#include <utility>

#include "runtime/data/files_below.h"
#include "runtime/data/wav.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpeechFolder = "/usr/share/asterisk/sounds/en_US_f_Allison";
constexpr std::size_t kHeldOutEvery = 10;
constexpr std::size_t kMostSamples = std::size_t{1} << 31;  ///< 4 GiB, in each rank's memory

Result<fs::path> folder_of(const std::string& name) {
  std::error_code error;
  const fs::path folder = name == "speech" ? kSpeechFolder : name;
  if (fs::is_directory(folder, error)) return folder;
  if (name == "speech")
    return fail(
        ErrorKind::usage,
        fmt::format(
            "data.corpus = \"speech\": there is no {}; scripts/deps --data installs it (Debian's package "
            "asterisk-core-sounds-en-wav), or name a folder of WAV files",
            kSpeechFolder));
  return fail(
      ErrorKind::usage,
      fmt::format("data.corpus = \"{}\" isn't a folder (from {}); recordings are \"speech\" (Debian's "
                  "package asterisk-core-sounds-en-wav), or the path of a folder of WAV files",
                  name, fs::current_path(error).string()));
}

Error other_rate(const fs::path& path, std::int64_t rate, std::int64_t wanted) {
  return {
      ErrorKind::usage,
      fmt::format("data.corpus: {} has {} samples a second, and task.rate is {}: all recordings have to have "
                  "that rate; convert it, or set task.rate",
                  path.string(), rate, wanted)};
}

}  // namespace

Result<Recordings> Recordings::open(const std::string& name, std::int64_t rate) {
  auto folder = folder_of(name);
  if (!folder) return tl::unexpected(folder.error());
  auto files = files_below(*folder, ".wav");
  if (!files) return tl::unexpected(files.error());
  if (files->size() < 2)
    return fail(ErrorKind::usage,
                fmt::format("data.corpus: there is one recording below {}, and recordings are "
                            "held out whole: two are needed at least",
                            folder->string()));
  Recordings all(*std::move(folder), *std::move(files));
  for (const fs::path& path : all.paths_) {
    const auto wav = read_wav(path);
    if (!wav) return tl::unexpected(Error{wav.error().kind, "data.corpus: " + wav.error().message});
    if (wav->rate != rate) return tl::unexpected(other_rate(path, wav->rate, rate));
    if (all.samples_.size() + wav->samples.size() > kMostSamples)
      return fail(ErrorKind::usage,
                  fmt::format("data.corpus: the recordings below {} have more than {} samples, "
                              "which a rank has in memory; take a part of them",
                              all.folder_.string(), kMostSamples));
    all.samples_.insert(all.samples_.end(), wav->samples.begin(), wav->samples.end());
    all.starts_.push_back(all.samples_.size());
  }
  return all;
}

bool Recordings::is_held_out(std::size_t recording) const {
  return count() < kHeldOutEvery ? recording + 1 == count() : recording % kHeldOutEvery == kHeldOutEvery - 1;
}

std::span<const std::int16_t> Recordings::samples(std::size_t recording) const {
  return std::span(samples_).subspan(starts_[recording], starts_[recording + 1] - starts_[recording]);
}

CorpusIdentity Recordings::identity() const {
  const auto bytes = std::as_bytes(std::span(samples_));
  const std::uint64_t hash = corpus_hash({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return {folder_.string(), bytes.size(),
          XXH3_64bits_withSeed(starts_.data(), starts_.size() * sizeof(starts_[0]), hash)};
}

}  // namespace footplate
