#include "runtime/base/bundled_library.h"

#include <dlfcn.h>
#include <link.h>

namespace footplate {

std::vector<std::filesystem::path> loaded_libraries(std::string_view name) {
  struct Search {
    std::string_view name;
    std::vector<std::filesystem::path> found;
  } search{name, {}};
  const auto look = [](dl_phdr_info* library, std::size_t /*size*/, void* data) {
    auto& into = *static_cast<Search*>(data);
    const std::filesystem::path path = library->dlpi_name;
    if (path.filename() == into.name) into.found.push_back(path);
    return 0;
  };
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

std::string loader_error() {
  const char* why = ::dlerror();
  return why != nullptr ? why : "no reason given";
}

}  // namespace footplate
