#include "console/lua/config/find_config.h"

#include <algorithm>
#include <set>
#include <vector>

#include "protocol/layout.h"
#include "protocol/schema.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// Folders where a bare name is looked up, nearest first.
std::vector<fs::path> config_folders(const fs::path& program_folder) {
  std::vector<fs::path> folders = places_of(Part::configs, program_folder);
  folders.insert(folders.begin(), "configs");
  return folders;
}

std::vector<std::string> configs_in(const std::vector<fs::path>& folders) {
  std::set<std::string> stems;
  for (const auto& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".lua") stems.insert(entry->path().stem().string());
  }
  return {stems.begin(), stems.end()};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Result<ConfigFile> find_config(const std::string& name, const fs::path& program_folder) {
  std::error_code ignored;
  if (name.empty()) return fail(ErrorKind::usage, "the name of a config is empty");
  if (fs::is_regular_file(name, ignored)) return ConfigFile{name, name};
  const auto folders = config_folders(program_folder);
  const bool bare = name.find('/') == std::string::npos;
  const std::string file_name = fs::path(name).extension() == ".lua" ? name : name + ".lua";
  if (bare) {
    for (const auto& folder : folders) {
      const fs::path path = folder / file_name;
      if (!fs::exists(path, ignored)) continue;
      const fs::path clean = folder.is_absolute() ? fs::weakly_canonical(path, ignored) : path;
      return ConfigFile{clean, clean.string()};
    }
  }
  if (fs::exists(name, ignored))
    return ConfigFile{name, name};  // a folder, a device: reading it says what is wrong
  std::string message = "can't read config " + name + ": no such file";
  if (bare) message += ", and no configs/" + file_name + " here or beside the program";
  const auto existing = configs_in(folders);
  const std::string near = nearest(fs::path(name).stem().string(), existing);
  if (!near.empty()) message += "; did you mean " + near + "?";
  if (!existing.empty()) message += " (configs there are: " + joined(existing) + ")";
  return fail(ErrorKind::usage, std::move(message));
}

}  // namespace footplate
