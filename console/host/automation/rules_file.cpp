#include "console/host/automation/rules_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace footplate {
namespace {

Result<void> replace_file(const std::filesystem::path& path, const std::string& text, bool durable) {
  const std::string fresh = path.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto failed = [&] {
    return fail(ErrorKind::failed, "can't write " + fresh + ": " + std::strerror(errno));
  };
  if (fd < 0) return failed();
  bool good = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  good = good && (!durable || ::fdatasync(fd) == 0);
  good = ::close(fd) == 0 && good;
  if (!good || ::rename(fresh.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace

KeptRules KeptRules::read(const std::filesystem::path& path, std::vector<std::string>& lost) {
  std::ifstream file(path);
  if (!file) return {};
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return read_kept_rules(json, lost);
  lost.emplace_back("it has no JSON object");
  return {};
}

Result<void> KeptRules::write(const std::filesystem::path& path, bool durable) const {
  return replace_file(path, to_line(to_json(*this)), durable);
}

}  // namespace footplate
