#include "console/lua/config/find_config.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "protocol/layout.h"
#include "protocol/schema.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPresets = "presets";

/// Folders where a bare name is looked up, nearest first.
std::vector<fs::path> config_folders(const fs::path& program_folder) {
  std::vector<fs::path> folders = places_of(Part::configs, program_folder);
  folders.insert(folders.begin(), "configs");
  return folders;
}

/// Where presets are; a config of the same name comes before one.
std::vector<fs::path> preset_folders(std::vector<fs::path> folders) {
  for (fs::path& folder : folders) folder /= kPresets;
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

std::optional<ConfigFile> file_in(const std::vector<fs::path>& folders, const std::string& file_name) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    const fs::path path = folder / file_name;
    if (!fs::exists(path, ignored)) continue;
    const fs::path clean = folder.is_absolute() ? fs::weakly_canonical(path, ignored) : path;
    return ConfigFile{clean, clean.string()};
  }
  return std::nullopt;
}

std::string file_name_of(const std::string& name) {
  return fs::path(name).extension() == ".lua" ? name : name + ".lua";
}

Error not_found(const std::string& name, bool bare, const std::vector<fs::path>& folders) {
  std::string message = "can't read config " + name + ": no such file";
  if (bare) message += ", and no configs/" + file_name_of(name) + " here or beside the program";
  const auto configs = configs_in(folders), presets = configs_in(preset_folders(folders));
  std::vector<std::string> all = configs;
  all.insert(all.end(), presets.begin(), presets.end());
  const std::string near = nearest(fs::path(name).stem().string(), all);
  if (!near.empty()) message += "; did you mean " + near + "?";
  if (!configs.empty()) message += " (configs there are: " + joined(configs) + ")";
  if (!presets.empty()) message += " (presets, to follow a config: " + joined(presets) + ")";
  return {ErrorKind::usage, std::move(message)};
}

}  // namespace

Result<ConfigFile> find_config(const std::string& name, const fs::path& program_folder) {
  std::error_code ignored;
  if (name.empty()) return fail(ErrorKind::usage, "the name of a config is empty");
  if (fs::is_regular_file(name, ignored)) return ConfigFile{name, name};
  const auto folders = config_folders(program_folder);
  const bool bare = name.find('/') == std::string::npos;
  if (bare) {
    if (auto config = file_in(folders, file_name_of(name))) return *config;
    if (auto preset = file_in(preset_folders(folders), file_name_of(name))) return *preset;
  }
  if (fs::exists(name, ignored))
    return ConfigFile{name, name};  // a folder, a device: reading it says what is wrong
  return tl::unexpected(not_found(name, bare, folders));
}

}  // namespace footplate
