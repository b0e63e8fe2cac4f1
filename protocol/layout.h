#pragma once

#include <filesystem>
#include <vector>

namespace footplate {

/// What programs look for besides their own file. The table of places is in layout.cpp; docs/install.md shows
/// the layouts: the build tree, a prefix, a bundle (scripts/bundle), and wheels in an environment of Python.
enum class Part {
  rank,            ///< footplate-rank
  runtimes,        ///< of wheels: the folder that has a footplate-rank for each version of torch
  console,         ///< footplate-console
  lua,             ///< footplate-lua
  schema,          ///< the table of settings, as JSON
  configs,         ///< the folder where a bare name is looked up
  cuda_library,    ///< what a rank opens where there is a device
  python_library,  ///< what a rank opens for a task in Python
  python_modules,  ///< the folder with the module `footplate` of such tasks
  kjv,             ///< the text of data.corpus = "kjv", which needs no program then
  mpirun,
};

/// The folder of this program, whatever link it was started by.
std::filesystem::path own_folder();

/// Where `part` may be, for a program in `folder`: the places of all layouts, nearest first.
std::vector<std::filesystem::path> places_of(Part part, const std::filesystem::path& folder);

/// The first of them that exists; where none does, the first one, for a message.
std::filesystem::path find_part(Part part, const std::filesystem::path& folder);

}  // namespace footplate
