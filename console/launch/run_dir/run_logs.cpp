#include "console/launch/run_dir/run_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "console/launch/start/file_tail.h"

namespace footplate {

Result<void> make_logs(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory / "log", error);
  const int fd = ::open(batch_log(directory).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return fail(ErrorKind::usage,
                "can't write " + batch_log(directory).string() + ": " + std::strerror(errno));
  ::close(fd);
  return {};
}

std::filesystem::path batch_log(const std::filesystem::path& directory) {
  return directory / "log" / "batch.log";
}
std::filesystem::path launcher_log(const std::filesystem::path& directory) {
  return directory / "log" / "launcher.log";
}

std::string launcher_words(const std::filesystem::path& directory) {
  constexpr std::size_t kShownLines = 20;
  std::string lines = last_lines(launcher_log(directory), kShownLines);
  if (const auto mark = lines.rfind(kStartMark); mark != std::string::npos)
    lines.erase(0, std::min(lines.find('\n', mark), lines.size() - 1) + 1);
  return lines;
}

}  // namespace footplate
