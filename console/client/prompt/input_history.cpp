#include "console/client/prompt/input_history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "protocol/json.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLongestFile = 1 << 20;  ///< bytes; a longer one is cut to the newest entries
constexpr std::size_t kLongestEntry = 64 << 10;

/// The file, locked against other clients while this lives.
class LockedFile {
 public:
  explicit LockedFile(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ >= 0) ::flock(fd_, LOCK_EX);
  }
  ~LockedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  void append(const std::string& text) const {
    if (fd_ >= 0) [[maybe_unused]]
      const auto written = ::write(fd_, text.data(), text.size());
  }
  void clear() const {
    if (fd_ >= 0) [[maybe_unused]]
      const auto cut = ::ftruncate(fd_, 0);
  }

 private:
  int fd_;
};

bool is_kept(const std::string& entry) {
  return !entry.empty() && entry.front() != ' ' && entry.size() <= kLongestEntry &&
         entry.find_first_not_of(" \t\n") != std::string::npos;
}

}  // namespace

InputHistory::InputHistory(const fs::path& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  path_ = folder / "history";
  load();
  if (fs::file_size(path_, ignored) > kLongestFile && !ignored) shorten();
}

void InputHistory::load() {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const auto entry = parse_line(line);
    if (entry && entry->is_string()) entries_.push_back(entry->get<std::string>());
  }
  if (entries_.size() > kMostEntries)
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kMostEntries));
}

/// In place and under the lock: a client that has the file open goes on appending to it.
void InputHistory::shorten() const {
  const LockedFile file(path_);
  file.clear();
  for (const auto& entry : entries_) file.append(to_line(entry));
}

bool InputHistory::add(const std::string& entry) {
  if (!is_kept(entry) || (!entries_.empty() && entries_.back() == entry)) return false;
  entries_.push_back(entry);
  if (!path_.empty()) LockedFile(path_).append(to_line(entry));
  return true;
}

}  // namespace footplate
