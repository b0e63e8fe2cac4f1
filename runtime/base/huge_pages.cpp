#include "runtime/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace footplate {

void ask_for_huge_pages(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (begin + memory.size()) / kHugePage * kHugePage;
  if (first < end) static_cast<void>(::madvise(memory.data() + (first - begin), end - first, MADV_HUGEPAGE));
}

void FreeMemory::operator()(void* memory) const {
  std::free(memory);
}

HugePages huge_pages(std::size_t bytes) {
  HugePages pages(static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes)));
  if (pages == nullptr) throw std::bad_alloc();
  ask_for_huge_pages({pages.get(), bytes});
  return pages;
}

}  // namespace footplate
