#include "faulty_disk.h"

#include <unistd.h>

#include <stdexcept>

namespace footplate::test {
namespace {

/// `path` after `from` was renamed to `to`.
std::filesystem::path moved(const std::filesystem::path& path, const std::filesystem::path& from,
                            const std::filesystem::path& to) {
  const auto inside = path.lexically_relative(from);
  const bool under = !path.empty() && !inside.empty() && *inside.begin() != "..";
  return !under ? path : inside == "." ? to : to / inside;
}

}  // namespace

FaultyDisk::~FaultyDisk() {
  for (auto& [descriptor, file] : open_) {
    ::close(descriptor);
    ::close(file.duplicate);
  }
  for (auto& file : closed_) ::close(file.duplicate);
}

void FaultyDisk::arm(int operation, bool crash, std::error_code error) {
  count_ = 0;
  armed_ = operation;
  crash_ = crash;
  error_ = error;
}

bool FaultyDisk::fails(const std::string& what) {
  ++count_;
  last_ = what;
  if (crash_ && count_ == armed_) throw Crash{};
  return error_ && (count_ == armed_ || (lasting_ && count_ > armed_ && armed_ > 0));
}

std::error_code FaultyDisk::make_folder(const std::filesystem::path& path) {
  if (fails("make " + path.filename().string())) return error_;
  const auto error = disk_.make_folder(path);
  if (!error) unsynced_.push_back({path.parent_path(), {}, path});
  return error;
}

std::error_code FaultyDisk::create(const std::filesystem::path& path, int& descriptor) {
  if (fails("create " + path.filename().string())) return error_;
  const auto error = disk_.create(path, descriptor);
  if (error) return error;
  open_[descriptor] = {::dup(descriptor), true};
  unsynced_.push_back({path.parent_path(), {}, path});
  return {};
}

std::error_code FaultyDisk::write(int descriptor, std::span<const std::byte> bytes) {
  open_.at(descriptor).synced = false;
  if (count_ + 1 == armed_)
    static_cast<void>(disk_.write(descriptor, bytes.first(bytes.size() / 2)));  // torn
  if (fails("write")) return error_;
  return disk_.write(descriptor, bytes);
}

std::error_code FaultyDisk::sync(int descriptor) {
  if (fails("sync")) return error_;
  open_.at(descriptor).synced = true;
  return disk_.sync(descriptor);
}

std::error_code FaultyDisk::close(int descriptor) {
  const bool failing = fails("close");
  closed_.push_back(open_.at(descriptor));
  open_.erase(descriptor);
  const auto error = disk_.close(descriptor);
  return failing ? error_ : error;
}

std::error_code FaultyDisk::sync_folder(const std::filesystem::path& path) {
  if (fails("sync folder " + path.filename().string())) return error_;
  std::erase_if(unsynced_, [&](const Change& change) { return change.folder == path; });
  return disk_.sync_folder(path);
}

std::error_code FaultyDisk::link(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (fails("link " + to.filename().string())) return error_;
  const auto error = disk_.link(from, to);
  if (!error) unsynced_.push_back({to.parent_path(), {}, to});
  return error;
}

std::error_code FaultyDisk::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (fails("rename to " + to.filename().string())) return error_;
  const auto error = disk_.rename(from, to);
  if (error) return error;
  follow(from, to);
  unsynced_.push_back({to.parent_path(), from, to});
  return {};
}

/// What was never synced inside a folder is now found under the folder's other name.
void FaultyDisk::follow(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (auto& change : unsynced_)
    for (auto* path : {&change.folder, &change.from, &change.to}) *path = moved(*path, from, to);
}

std::error_code FaultyDisk::remove(const std::filesystem::path& path) {
  if (fails("remove " + path.filename().string())) return error_;
  // Kept aside: a removal that was never synced may come back.
  const auto kept = trash_ / std::to_string(unsynced_.size() + static_cast<std::size_t>(count_) * 1000);
  const auto error = disk_.rename(path, kept);
  if (!error) unsynced_.push_back({path.parent_path(), path, kept});
  return error;
}

void FaultyDisk::lose(Loss loss) {
  if (loss == Loss::everything || loss == Loss::content) {
    for (auto& [descriptor, file] : open_) closed_.push_back({::dup(file.duplicate), file.synced});
    for (auto& file : closed_)
      if (!file.synced && ::ftruncate(file.duplicate, 0) != 0) throw std::runtime_error("ftruncate");
  }
  if (loss == Loss::everything || loss == Loss::names) {
    while (!unsynced_.empty()) {
      const Change change = unsynced_.back();
      unsynced_.pop_back();
      std::error_code ignored;
      if (change.from.empty()) {
        std::filesystem::remove_all(change.to, ignored);
      } else {
        std::filesystem::rename(change.to, change.from, ignored);
        follow(change.to, change.from);
      }
    }
  }
  unsynced_.clear();
}

}  // namespace footplate::test
