#include "runtime/checkpoint/snapshot_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "runtime/base/huge_pages.h"

namespace footplate {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
/// What a copy leaves to others, at least.
constexpr std::size_t kLeft = 256 * kMebibyte;

/// Linux 5.14 does it at once, for older ones a byte of each page is written.
void fill_in_pages(std::span<std::byte> bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE) == 0) return;
#endif
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < bytes.size(); at += page)
    *const_cast<volatile std::byte*>(&bytes[at]) = std::byte{0};
}

std::string in_mebibytes(std::size_t bytes) {
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

}  // namespace

Result<void> SnapshotBuffer::reserve(std::size_t bytes) {
  if (bytes <= bytes_.size()) return {};
  release();
  if (const auto left = memory_left_(); left && static_cast<std::uint64_t>(*left) < bytes + kLeft)
    return fail(ErrorKind::failed, "a copy of the state takes " + in_mebibytes(bytes) + ", and only " +
                                       in_mebibytes(static_cast<std::size_t>(*left)) + " of memory are left");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorKind::failed, "there is no memory for a copy of the state, " + in_mebibytes(bytes) +
                                       ": " + std::generic_category().message(errno));
  bytes_ = {static_cast<std::byte*>(memory), bytes};
  ask_for_huge_pages(bytes_);
  fill_in_pages(bytes_);
  return {};
}

void SnapshotBuffer::release() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

}  // namespace footplate
