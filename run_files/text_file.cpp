#include "run_files/text_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace footplate {

/// By read(), which tells of an error. An iterator over the stream's buffer throws.
Result<std::string> text_of_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16384> block{};
  while (file.read(block.data(), block.size()), file.gcount() > 0)
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  if (file.is_open() && !file.bad()) return text;
  return fail(ErrorKind::usage, "can't read " + path.string() + ": " +
                                    (errno == 0 ? "it can't be read" : std::strerror(errno)));
}

}  // namespace footplate
