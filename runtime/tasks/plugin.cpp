#include "runtime/tasks/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/data/mapped_file.h"

namespace footplate {
namespace {

constexpr std::string_view kMark = "footplate task: api ";
constexpr std::string_view kTorch = ", torch ";

/// What FOOTPLATE_TASK has written into the library.
struct BuiltWith {
  std::uint32_t api = 0;
  std::string torch;
};

tl::unexpected<Error> unfit(const std::filesystem::path& path, const std::string& why) {
  return fail(ErrorKind::usage, fmt::format("run.task = \"{}{}\": {}", kPluginPrefix, path.string(), why));
}

std::optional<BuiltWith> built_with(std::string_view bytes) {
  const auto mark = bytes.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  constexpr std::size_t kLongest = 64;
  const std::string_view rest = bytes.substr(mark + kMark.size(), kLongest);
  BuiltWith built;
  const auto number = std::from_chars(rest.data(), rest.data() + rest.size(), built.api);
  const auto torch = rest.find(kTorch);
  const auto end = rest.find(';');
  if (number.ec != std::errc() || torch == std::string_view::npos || end == std::string_view::npos ||
      end < torch)
    return std::nullopt;
  built.torch = rest.substr(torch + kTorch.size(), end - torch - kTorch.size());
  return built;
}

/// From what the file says of itself, before anything of it runs.
Result<void> check_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return unfit(path,
                 "there is no such file; build it (footplate_add_task), or give its path from the folder "
                 "that footplate run is called in");
  if (!std::filesystem::is_regular_file(path, error))
    return unfit(path, "that is no file; a plugin is a shared library");
  const auto file = MappedFile::open(path);
  if (!file) return unfit(path, file.error().message);
  const auto bytes = file->bytes();
  const auto built = built_with({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!built)
    return unfit(path,
                 "it is no task of footplate's: one of its sources has to say FOOTPLATE_TASK(name, Class)");
  if (built->api != v1::kApi)
    return unfit(
        path,
        fmt::format("it was built for the task interface {}, this footplate has {}; build it again with the "
                    "headers of this footplate",
                    built->api, v1::kApi));
  if (built->torch != TORCH_VERSION)
    return unfit(
        path,
        fmt::format("it was built with LibTorch {}, this footplate has {}; build it again with that one "
                    "(pip install torch=={})",
                    built->torch, TORCH_VERSION, TORCH_VERSION));
  return {};
}

}  // namespace

Result<const v1::Descriptor*> load_plugin(const std::filesystem::path& path) {
  if (auto good = check_file(path); !good) return tl::unexpected(good.error());
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unfit(path, fmt::format("the loader says: {}", ::dlerror()));
  const auto* task = static_cast<const v1::Descriptor*>(::dlsym(library, "footplate_task"));
  if (task == nullptr)
    return unfit(path,
                 "it has no symbol footplate_task; FOOTPLATE_TASK(name, Class) has to stand outside of "
                 "namespaces, and what builds it must not hide or strip the symbol");
  const v1::Descriptor mine;
  if (task->size != mine.size || task->api != mine.api || task->cxx11_abi != mine.cxx11_abi ||
      std::string_view(task->torch) != mine.torch)
    return unfit(
        path, fmt::format("its descriptor (size {}, api {}, C++ ABI {}, LibTorch {}) isn't this footplate's "
                          "({}, {}, {}, {}); build it again with this footplate's headers and compiler flags",
                          task->size, task->api, task->cxx11_abi, task->torch, mine.size, mine.api,
                          mine.cxx11_abi, mine.torch));
  return task;
}

}  // namespace footplate
