#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/disk.h"

namespace footplate::test {

/// Thrown where the process is to have died.
struct Crash {};

/// What a power cut takes with it, of what was never synced.
enum class Loss {
  nothing,     ///< only the process died
  everything,  ///< unsynced content and unsynced names
  content,     ///< names survive, with empty files behind them
  names,       ///< content survives, under the old names
};

/// A disk on which one operation fails, or before which (within which, for a write) the process dies.
/// Remembers what was synced, so that lose() can take the rest away.
class FaultyDisk final : public Disk {
 public:
  explicit FaultyDisk(std::filesystem::path trash) : trash_(std::move(trash)) {}
  ~FaultyDisk() override;

  /// From now on operation number `operation` (counted from 1) crashes, or fails with `error`.
  void crash_at(int operation) { arm(operation, true, {}); }
  void fail_at(int operation, std::error_code error, bool lasting) {
    arm(operation, false, error);
    lasting_ = lasting;
  }
  int operations() const { return count_; }
  const std::string& last() const { return last_; }

  /// After a crash: what the device would hold.
  void lose(Loss loss);

  std::error_code make_folder(const std::filesystem::path& path) override;
  std::error_code create(const std::filesystem::path& path, int& descriptor) override;
  std::error_code write(int descriptor, std::span<const std::byte> bytes) override;
  std::error_code sync(int descriptor) override;
  std::error_code close(int descriptor) override;
  std::error_code sync_folder(const std::filesystem::path& path) override;
  std::error_code link(const std::filesystem::path& from, const std::filesystem::path& to) override;
  std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  std::error_code remove(const std::filesystem::path& path) override;

 private:
  struct File {
    int duplicate = -1;  ///< finds the file under whatever name it has now
    bool synced = true;
  };
  /// One change of names: `from` empty for a creation, `to` in the trash for a removal.
  struct Change {
    std::filesystem::path folder;
    std::filesystem::path from;
    std::filesystem::path to;
  };

  void follow(const std::filesystem::path& from, const std::filesystem::path& to);
  void arm(int operation, bool crash, std::error_code error);
  /// Counts an operation; true if it is to fail with error_.
  bool fails(const std::string& what);

  PosixDisk disk_;
  std::filesystem::path trash_;
  std::map<int, File> open_;
  std::list<File> closed_;
  std::vector<Change> unsynced_;
  int count_ = 0;
  int armed_ = 0;
  bool crash_ = false;
  bool lasting_ = false;
  std::error_code error_;
  std::string last_;
};

}  // namespace footplate::test
