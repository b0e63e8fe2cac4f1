#include "console/client/runs/json_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "protocol/reserved_file.h"

namespace footplate {
namespace {

constexpr std::size_t kLargestFile = 16 << 20;

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<Json> read_json_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorKind::failed, "can't read " + path.string() + ": " + std::strerror(errno));
  std::string text;
  for (char block[65536]; file.read(block, sizeof(block)) || file.gcount() > 0;) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargestFile) return fail(ErrorKind::failed, path.string() + " is larger than 16 MiB");
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::failed, path.string() + " is not JSON");
  return json;
}

Result<void> write_json_file(const std::filesystem::path& path, const Json& json) {
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string part = path.string() + "." + std::to_string(::getpid()) + ".part";
  const auto failed = [&] {
    const std::string why = std::strerror(errno);
    ::unlink(part.c_str());
    if (write_into_reserved_room(path, text)) return Result<void>();
    return Result<void>(fail(ErrorKind::failed, "can't write " + path.string() + ": " + why));
  };
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed();
  const bool written = write_all(fd, text);
  const bool closed = ::close(fd) == 0;
  if (!written || !closed || ::rename(part.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace footplate
