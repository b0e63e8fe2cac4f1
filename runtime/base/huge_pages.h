#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace footplate {

/// Of Linux on x86_64 and arm64.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Asks the system for huge pages behind memory that hasn't been touched yet. A copy between processes takes
/// each page by itself, and with huge ones half as long. Where the system gives none nothing changes.
void ask_for_huge_pages(std::span<std::byte> memory);

struct FreeMemory {
  void operator()(void* memory) const;
};
/// Memory of malloc's, in huge pages where there are some. `bytes`: a multiple of kHugePage. Throws
/// std::bad_alloc.
using HugePages = std::unique_ptr<std::byte[], FreeMemory>;
HugePages huge_pages(std::size_t bytes);

}  // namespace footplate
