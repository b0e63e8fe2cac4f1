#include "protocol/layout.h"

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace footplate {
namespace {

namespace fs = std::filesystem;

struct Row {
  Part part;
  std::vector<const char*> places;  ///< from the folder of the program; a '*' is any text in one name
};

/// A prefix, a bundle and the build tree are alike: bin/, lib/, share/. Of wheels, `footplate` has those in
/// the environment (its bin/, its share/), and `footplate-runtime` a bin/ and a lib/ for each version of
/// torch in lib/python3.N/site-packages/footplate_runtime/torch-VERSION/.
const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {Part::rank, {"footplate-rank"}},
      {Part::runtimes, {"../lib*/python3*/*-packages/footplate_runtime"}},
      {Part::console, {"footplate-console", "../../../../../../bin/footplate-console"}},
      {Part::lua, {"footplate-lua"}},
      {Part::schema, {"../share/footplate/schema.json"}},
      {Part::configs, {"../share/footplate/configs", "../../../configs"}},  // the latter: the project's own
      {Part::cuda_library, {"../lib/libfootplate_cuda.so"}},
      {Part::python_library, {"../lib/libfootplate_python.so"}},
      {Part::python_modules, {"../lib/python"}},
      {Part::kjv, {"../share/footplate/kjv.txt", "../../share/footplate/kjv.txt"}},
      {Part::mpirun, {"../lib/footplate/mpi/bin/mpirun", "../mpi/bin/mpirun", "mpirun"}},
  };
  return rows;
}

std::vector<fs::path> matching(const fs::path& folder, const std::string& pattern) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (::fnmatch(pattern.c_str(), entry->path().filename().c_str(), 0) == 0) found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> expanded(const fs::path& folder, const fs::path& place) {
  std::vector<fs::path> found{folder};
  for (const fs::path& name : place) {
    std::vector<fs::path> longer;
    for (const fs::path& base : found) {
      if (name.string().find('*') == std::string::npos)
        longer.push_back(base / name);
      else
        for (const fs::path& match : matching(base, name)) longer.push_back(match);
    }
    found = std::move(longer);
  }
  return found;
}

}  // namespace

fs::path own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::vector<fs::path> places_of(Part part, const fs::path& folder) {
  std::vector<fs::path> places;
  for (const Row& row : table())
    if (row.part == part)
      for (const char* place : row.places)
        for (const fs::path& path : expanded(folder, place)) places.push_back(path.lexically_normal());
  return places;
}

fs::path find_part(Part part, const fs::path& folder) {
  const auto places = places_of(part, folder);
  std::error_code ignored;
  const auto there = std::find_if(places.begin(), places.end(),
                                  [&](const fs::path& path) { return fs::exists(path, ignored); });
  if (there != places.end()) return *there;
  return places.empty() ? fs::path() : places.front();
}

}  // namespace footplate
