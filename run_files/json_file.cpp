#include "run_files/json_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "protocol/reserved_file.h"

namespace footplate {
namespace {

std::error_code write_all(int descriptor, std::string_view text, Durable durable) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return {errno, std::generic_category()};
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (durable == Durable::yes && ::fsync(descriptor) != 0) return {errno, std::generic_category()};
  return {};
}

/// Best effort: the file is whole in either case, and some network file systems refuse this.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  static_cast<void>(::fsync(descriptor));
  ::close(descriptor);
}

std::error_code write_new_file(const std::string& path, std::string_view text, Durable durable) {
  ::unlink(path.c_str());  // of a process that had this number before
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return {errno, std::generic_category()};
  const std::error_code error = write_all(descriptor, text, durable);
  if (::close(descriptor) != 0 && !error) return {errno, std::generic_category()};
  return error;
}

}  // namespace

Result<Json> read_json_file(const std::filesystem::path& path, std::size_t largest) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorKind::failed, "can't read " + path.string() + ": " + std::strerror(errno));
  std::string text;
  for (char block[65536]; file.read(block, sizeof(block)) || file.gcount() > 0;) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest)
      return fail(ErrorKind::failed,
                  path.string() + " is larger than " + std::to_string(largest >> 20U) + " MiB");
  }
  auto json = parse_line(text);
  if (!json)
    return fail(ErrorKind::failed,
                path.string() + " is not JSON (or has more than " + std::to_string(kMaxLevels) + " levels)");
  return json;
}

Result<void> write_text_file(const std::filesystem::path& path, std::string_view text, Durable durable) {
  const std::string temporary = path.string() + ".tmp-" + std::to_string(::getpid());
  std::error_code error = write_new_file(temporary, text, durable);
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) error = {errno, std::generic_category()};
  if (error) {
    ::unlink(temporary.c_str());
    if (write_into_reserved_room(path, text)) return {};
    return fail(ErrorKind::failed, "can't write " + path.string() + ": " + error.message());
  }
  if (durable == Durable::yes) sync_folder(path.parent_path());
  return {};
}

Result<void> write_json_file(const std::filesystem::path& path, const Json& json, Durable durable) {
  return write_text_file(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", durable);
}

Result<void> update_json_file(const std::filesystem::path& path, const Json& fields) {
  const auto before = read_json_file(path);
  std::error_code ignored;
  if (!before && !std::ifstream(path) && std::filesystem::exists(path, ignored))
    return tl::unexpected(before.error());
  Json json = before && before->is_object() ? *before : Json::object();
  json.update(fields);
  return write_json_file(path, json);
}

}  // namespace footplate
