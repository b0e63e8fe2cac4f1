#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "protocol/messages/link_messages.h"

namespace footplate::host {

/// journal.lua: every applied order as a runnable job script, in the order they were applied.
///
///   -- order 17 · ann · s3 · 2026-11-20T19:29:35Z · log.every was 50
///   --   log.every = 10
///   at(12041, { log = { every = 10 } })
///
/// Each entry is appended and synced before append() returns. Where the disk refuses, entries wait in
/// memory and are tried again.
class Journal {
 public:
  /// Opens or makes the file, and reads which orders of this start (`run.started`) it has. Errors: the file.
  static Result<Journal> open(const std::filesystem::path& path, const RunIdentity& run);

  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// `report` is an order report in state `applied` with its `order`; one that is in the file already is
  /// skipped. False where the disk took less than all of it.
  bool append(const OrderReport& report);

  /// A line for whoever reads it: what happened to the run between two orders.
  bool note(const std::string& text);

  /// Writes what an earlier append could not.
  bool retry();

  /// The last `bytes` of the file, from the start of a line.
  std::string tail(std::size_t bytes) const;

 private:
  Journal(int fd, std::set<std::uint64_t> have) : fd_(fd), have_(std::move(have)) {}

  int fd_;
  std::set<std::uint64_t> have_;
  std::string pending_;
};

/// The entry of one applied order; empty where `report` isn't one.
std::string journal_entry(const OrderReport& report, const std::string& iso_time);

}  // namespace footplate::host
