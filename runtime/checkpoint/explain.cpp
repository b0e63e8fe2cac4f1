#include "runtime/checkpoint/explain.h"

#include <cerrno>

namespace footplate {
namespace {

std::string free_space(const std::filesystem::path& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return {};
  return " (" + std::to_string(space.available / 1000000) + " MB free)";
}

}  // namespace

std::string explain_disk_error(const std::error_code& error, const std::filesystem::path& folder) {
  const std::string message = error.message();
  const auto is = [&error](std::errc code) { return error == code; };
  if (is(std::errc::no_space_on_device) || error.value() == EDQUOT)
    return message + free_space(folder) + "; free some space, or keep fewer checkpoints (ckpt.keep)";
  if (is(std::errc::file_too_large)) return message + "; a limit on the size of files is set (ulimit -f)";
  if (is(std::errc::permission_denied) || is(std::errc::operation_not_permitted))
    return message + "; the folder has to be writable by the user that trains";
  if (is(std::errc::read_only_file_system))
    return message + "; mount it writable again, or start the next run elsewhere (FOOTPLATE_RUNS)";
  if (is(std::errc::io_error))
    return message + "; the device or the network behind it fails: see the system's log";
  return message;
}

}  // namespace footplate
