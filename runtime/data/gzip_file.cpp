#include "runtime/data/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

namespace footplate {
namespace {

constexpr std::size_t kMostBytes = std::size_t{2} << 30;  ///< a small file may be any size unpacked
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

std::string why(gzFile_s* file) {
  int code = Z_OK;
  const std::string text = gzerror(file, &code);
  if (code == Z_ERRNO) return fmt::format("can't be read: {}", std::strerror(errno));
  return code == Z_BUF_ERROR ? "is cut short" : fmt::format("is damaged ({})", text);
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file_or_gzip(const std::filesystem::path& path) {
  const auto bad = [&](const std::string& what) {
    return fail(ErrorKind::usage, fmt::format("{} {}", path.string(), what));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return bad("is a folder, not a file");
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rbe"));
  if (file == nullptr) return bad(fmt::format("can't be read: {}", std::strerror(errno)));
  std::vector<std::uint8_t> bytes;
  while (true) {
    const std::size_t had = bytes.size();
    if (had > kMostBytes) return bad(fmt::format("has more than {} bytes unpacked", kMostBytes));
    bytes.resize(had + kReadAtOnce);
    const int got = gzread(file.get(), bytes.data() + had, static_cast<unsigned>(kReadAtOnce));
    if (got < 0) return bad(why(file.get()));
    bytes.resize(had + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code != Z_OK) return bad(why(file.get()));
  if (bytes.empty()) return bad("is empty");
  return bytes;
}

}  // namespace footplate
