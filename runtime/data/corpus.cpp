#include "runtime/data/corpus.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "runtime/data/corpus_cache.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKnown = "known are kjv, python, and the path of any file or folder";

/// Where a bundle (scripts/bundle) has the text, which needs no program then.
fs::path bundled_kjv() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share" / "footplate" / "kjv.txt";
}

Result<void> write_kjv(std::ostream& out) {
  const std::unique_ptr<FILE, int (*)(FILE*)> bible(
      popen("bible -f gen1:1-rev22:21 2>/dev/null </dev/null", "re"), pclose);
  std::array<char, 1 << 16> block;
  std::size_t total = 0;
  while (const std::size_t read = bible ? fread(block.data(), 1, block.size(), bible.get()) : 0) {
    out.write(block.data(), static_cast<std::streamsize>(read));
    total += read;
  }
  if (total == 0)
    return fail(ErrorKind::usage,
                "data.corpus = \"kjv\": the program `bible` gave no text; install Debian's package "
                "bible-kjv, or choose another corpus: " +
                    std::string(kKnown));
  return {};
}

/// All regular files below `folder`, sorted by path; hidden files and folders are left out.
std::vector<fs::path> files_below(const fs::path& folder, const std::string& extension = "") {
  std::vector<fs::path> files;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.')) {
      if (entry->is_directory(error)) entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error) && (extension.empty() || path.extension() == extension)) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
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

Result<fs::path> concatenated(const std::string& name, const std::vector<fs::path>& files) {
  return cached_corpus(
      fmt::format("{}-{}.txt", name, fingerprint(files)), [&](std::ostream& out) -> Result<void> {
        for (const fs::path& file : files) {
          // An empty file would set the stream's fail bit: operator<< inserted nothing.
          std::error_code error;
          if (fs::file_size(file, error) == 0 || error) continue;
          std::ifstream in(file, std::ios::binary);
          if (!in || !(out << in.rdbuf()))
            return fail(ErrorKind::usage, fmt::format("can't copy {} into the corpus", file.string()));
        }
        return {};
      });
}

Result<fs::path> python_sources() {
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
  return concatenated("python", files_below(newest, ".py"));
}

Result<fs::path> locate(const std::string& name) {
  std::error_code error;
  if (name == "kjv")
    return fs::is_regular_file(bundled_kjv(), error) ? bundled_kjv() : cached_corpus("kjv.txt", write_kjv);
  if (name == "python") return python_sources();
  if (fs::is_regular_file(name, error)) return fs::path(name);
  if (!fs::is_directory(name, error))
    return fail(ErrorKind::usage, fmt::format("data.corpus = \"{}\": no such file or folder (from {}); {}",
                                              name, fs::current_path(error).string(), kKnown));
  const auto files = files_below(name);
  if (files.empty())
    return fail(ErrorKind::usage, fmt::format("data.corpus = \"{}\": the folder has no files", name));
  return concatenated("folder", files);
}

}  // namespace

Result<Corpus> Corpus::open(const std::string& name) {
  const auto path = locate(name);
  if (!path) return tl::unexpected(path.error());
  auto file = MappedFile::open(*path);
  if (!file) return tl::unexpected(Error{file.error().kind, "data.corpus: " + file.error().message});
  return Corpus(std::move(*file));
}

Corpus::Corpus(MappedFile file)
    : file_(std::move(file)), split_(file_.bytes().size() - file_.bytes().size() / 10) {}

}  // namespace footplate
