#include "runtime/data/corpus.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "protocol/layout.h"
#include "runtime/data/corpus_cache.h"
#include "runtime/data/files_below.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeldOutPart = 10;  ///< of so many is held out
constexpr const char* kKnown = "known are kjv, python, and the path of any file or folder";

/// Where a bundle or a wheel has the text, which needs no program then.
fs::path bundled_kjv() {
  return find_part(Part::kjv, own_folder());
}

/// All that `in` gives, and how much that was. Errors (failed): reading `name`, or what `take` says.
Result<std::uintmax_t> copy(FILE* in, std::string_view name, const TakeBytes& take) {
  std::array<char, 1 << 16> block;
  std::uintmax_t total = 0;
  while (const std::size_t read = in != nullptr ? fread(block.data(), 1, block.size(), in) : 0) {
    if (auto taken = take({block.data(), read}); !taken) return tl::unexpected(taken.error());
    total += read;
  }
  if (in == nullptr || ferror(in) != 0)  // what isn't allowed won't be at the next try either
    return fail(in == nullptr && errno == EACCES ? ErrorKind::usage : ErrorKind::failed,
                fmt::format("data.corpus: can't read {}: {}; start again once it can be read", name,
                            std::strerror(errno)));
  return total;
}

Error no_bible(const std::string& what) {
  return {ErrorKind::usage,
          fmt::format("data.corpus = \"kjv\": the program `bible` {}; install Debian's package bible-kjv, or "
                      "choose another corpus: {}",
                      what, kKnown)};
}

Result<void> write_kjv(const TakeBytes& take) {
  FILE* bible = popen("bible -f gen1:1-rev22:21 2>/dev/null </dev/null", "re");
  const auto copied = copy(bible, "what the program `bible` prints", take);
  const int status = bible != nullptr ? pclose(bible) : -1;
  if (!copied) return tl::unexpected(copied.error());
  if (*copied > 0 && status == 0) return {};
  return tl::unexpected(no_bible(fmt::format("gave {} bytes of text and ended with code {}", *copied,
                                             WIFEXITED(status) ? WEXITSTATUS(status) : status)));
}

/// Changes when a file is added, removed, resized or rewritten.
std::string fingerprint(const std::vector<fs::path>& files) {
  std::string text;
  std::error_code error;
  for (const fs::path& file : files)
    text += fmt::format("{}\n{}\n{}\n", file.string(), fs::file_size(file, error),
                        fs::last_write_time(file, error).time_since_epoch().count());
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Result<fs::path> concatenated(const std::string& name, const fs::path& folder,
                              const std::string& extension = "") {
  const auto files = files_below(folder, extension);
  if (!files) return tl::unexpected(files.error());
  const std::string before = fingerprint(*files);
  std::uintmax_t bytes = 0;
  std::error_code ignored;  // copying says it
  for (const fs::path& file : *files) bytes += fs::file_size(file, ignored);
  return cached_corpus(
      fmt::format("{}-{}.txt", name, before), bytes, [&](const TakeBytes& take) -> Result<void> {
        std::uintmax_t total = 0;
        for (const fs::path& file : *files) {
          const std::unique_ptr<FILE, int (*)(FILE*)> in(std::fopen(file.c_str(), "rbe"), std::fclose);
          const auto copied = copy(in.get(), file.native(), take);
          if (!copied) return tl::unexpected(copied.error());
          total += *copied;
        }
        if (total == bytes && fingerprint(*files) == before) return {};
        return fail(
            ErrorKind::failed,
            fmt::format("data.corpus: files below {} changed while they were copied ({} bytes, of {}); "
                        "start again once nobody writes there",
                        folder.string(), total, bytes));
      });
}

Result<fs::path> python_folder() {
  fs::path newest;
  std::error_code error;
  for (const char* prefix : {"/usr/lib", "/usr/local/lib"})
    for (const auto& entry : fs::directory_iterator(prefix, error))
      if (fs::exists(entry.path() / "argparse.py", error)) newest = std::max(newest, entry.path());
  if (newest.empty())
    return fail(ErrorKind::usage,
                "data.corpus = \"python\": no Python standard library below /usr/lib or "
                "/usr/local/lib; install Debian's package libpython3-stdlib, or choose another "
                "corpus: " +
                    std::string(kKnown));
  return newest;
}

Result<fs::path> python_sources() {
  const auto folder = python_folder();
  return folder ? concatenated("python", *folder, ".py") : folder;
}

/// Why neither a file nor a folder can be read under that path.
Error no_text(const std::string& name, const fs::file_status& about, const std::error_code& error) {
  std::error_code ignored;
  std::string why = fmt::format("no such file or folder (from {})", fs::current_path(ignored).string());
  if (fs::exists(about))
    why = "is neither a file nor a folder, but a device, a pipe or a socket, which has no end";
  else if (about.type() == fs::file_type::none)
    why = error.message();
  return {ErrorKind::usage, fmt::format("data.corpus = \"{}\": {}; {}", name, why, kKnown)};
}

Result<fs::path> locate(const std::string& name) {
  std::error_code error;
  if (name == "kjv")
    return fs::is_regular_file(bundled_kjv(), error) ? bundled_kjv()
                                                     : cached_corpus("kjv.txt", std::nullopt, write_kjv);
  if (name == "python") return python_sources();
  const fs::file_status about = fs::status(name, error);
  if (fs::is_regular_file(about)) return fs::path(name);
  if (fs::is_directory(about)) return concatenated("folder", name);
  return tl::unexpected(no_text(name, about, error));
}

/// As a shell finds a program.
bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

using Bytes = std::optional<std::uintmax_t>;

Result<Bytes> bytes_of_file(const fs::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(ErrorKind::usage, "data.corpus: " + file.error().message);
  return Bytes(file->bytes().size());
}

Result<Bytes> bytes_of_kjv() {
  std::error_code error;
  if (fs::is_regular_file(bundled_kjv(), error)) return bytes_of_file(bundled_kjv());
  const auto cached = cached_corpus_path("kjv.txt");
  if (!cached) return tl::unexpected(cached.error());
  if (fs::is_regular_file(*cached, error)) return bytes_of_file(*cached);
  if (!is_in_path("bible")) return tl::unexpected(no_bible("isn't in the PATH"));
  return Bytes();
}

Result<Bytes> bytes_below(const fs::path& folder, const std::string& extension = "") {
  const auto files = files_below(folder, extension);
  if (!files) return fail(ErrorKind::usage, files.error().message);
  std::uintmax_t bytes = 0;
  for (const fs::path& file : *files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    if (error || ::access(file.c_str(), R_OK) != 0)
      return fail(ErrorKind::usage, fmt::format("data.corpus: can't read {}: {}", file.string(),
                                                error ? error.message() : std::strerror(errno)));
    bytes += size;
  }
  if (bytes == 0)
    return fail(ErrorKind::usage, fmt::format("data.corpus: all files below {} are empty", folder.string()));
  return Bytes(bytes);
}

}  // namespace

Result<std::optional<std::uintmax_t>> Corpus::look(const std::string& name) {
  std::error_code error;
  if (name == "kjv") return bytes_of_kjv();
  if (name == "python") {
    const auto folder = python_folder();
    return folder ? bytes_below(*folder, ".py") : tl::unexpected(folder.error());
  }
  const fs::file_status about = fs::status(name, error);
  if (fs::is_regular_file(about)) return bytes_of_file(name);
  return fs::is_directory(about) ? bytes_below(name) : tl::unexpected(no_text(name, about, error));
}

Result<void> Corpus::check_length(const std::string& name, std::uintmax_t bytes, std::int64_t context) {
  const auto held_out = static_cast<std::int64_t>(bytes / kHeldOutPart);
  if (held_out > context) return {};
  return fail(
      ErrorKind::usage,
      fmt::format("data.corpus = \"{}\" has {} bytes and holds out {} (its last 10 %), too few for one "
                  "sample of model.context + 1 = {}; take a text of at least {} bytes{}",
                  name, bytes, held_out, context + 1, kHeldOutPart * static_cast<std::size_t>(context + 1),
                  held_out > 1 ? fmt::format(", or set model.context below {}", held_out) : ""));
}

Result<Corpus> Corpus::open(const std::string& name) {
  const auto path = locate(name);
  if (!path) return tl::unexpected(path.error());
  auto file = MappedFile::open(*path);
  if (!file) return tl::unexpected(Error{file.error().kind, "data.corpus: " + file.error().message});
  std::error_code ignored;
  return Corpus(fs::absolute(*path, ignored).string(), std::move(*file));
}

CorpusIdentity Corpus::identity() const {
  return {path_, file_.bytes().size(), corpus_hash(file_.bytes())};
}

Corpus::Corpus(std::string path, MappedFile file)
    : path_(std::move(path)),
      file_(std::move(file)),
      split_(file_.bytes().size() - file_.bytes().size() / kHeldOutPart) {}

}  // namespace footplate
