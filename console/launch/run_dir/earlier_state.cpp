#include "console/launch/run_dir/earlier_state.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "run_files/checkpoint_folders.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/lease.h"
#include "run_files/result_file.h"
#include "run_files/run_file.h"
#include "run_files/text_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr auto kRefusedFile = "refused-start.json";
/// Each start has files of its own with these names, and its number.
constexpr std::array<std::string_view, 3> kOfStarts{"config-", "orders-", "result-"};

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    paths.push_back(entry->path());
  return paths;
}

bool is_of_a_start(const std::string& name) {
  return name.ends_with(".json") && std::any_of(kOfStarts.begin(), kOfStarts.end(),
                                                [&](const auto& prefix) { return name.starts_with(prefix); });
}

bool has_done_a_step(const fs::path& directory) {
  const auto record = read_run_file(directory);
  const auto result = read_result_file(directory / kResultFile);
  std::error_code none;
  const auto starts = fs::file_size(directory / kStartsFile, none);
  return record && (record->step > 0 || (result && result->step > 0) || (!none && starts > 0) ||
                    !newest_checkpoint(directory).empty());
}

}  // namespace

EarlierState EarlierState::of(const fs::path& directory) {
  EarlierState state;
  if (!has_done_a_step(directory)) return state;
  state.directory_ = directory;
  for (const char* name : {kRunFile, kResultFile, kCommandLineFile, kGivenFile, kJobPlanFile}) {
    auto json = read_json_file(directory / name);
    state.files_.push_back({directory / name, json ? std::optional(*std::move(json)) : std::nullopt});
  }
  for (const fs::path& path : files_in(directory))
    if (is_of_a_start(path.filename())) state.of_starts_.insert(path.filename());
  for (const fs::path& path : files_in(directory / "jobs"))
    if (path.extension() == ".lua") state.scripts_.push_back({path, text_of_file(path).value_or("")});
  std::error_code none;
  const auto bytes = fs::file_size(directory / kStartsFile, none);
  state.starts_bytes_ = none ? 0 : bytes;
  return state;
}

void EarlierState::put_back() const {
  if (directory_.empty()) return;
  std::error_code ignored;
  for (const fs::path& path : files_in(directory_))
    if (const std::string name = path.filename(); is_of_a_start(name) && !of_starts_.contains(name))
      fs::remove(path, ignored);
  for (const KeptFile& file : files_)
    if (!file.content)
      fs::remove(file.path, ignored);
    else
      static_cast<void>(write_json_file(file.path, *file.content));
  for (const KeptScript& script : scripts_)
    std::ofstream(script.path, std::ios::binary | std::ios::trunc) << script.text;
  const auto bytes = fs::file_size(directory_ / kStartsFile, ignored);
  if (!ignored && bytes > starts_bytes_) fs::resize_file(directory_ / kStartsFile, starts_bytes_, ignored);
  // Without a lease, the run of another host that was lost would count as live for ever.
  if (!fs::exists(directory_ / kResultFile, ignored)) expire_lease(directory_);
}

std::optional<RunResult> read_refused_start(const fs::path& directory) {
  return read_result_file(directory / kRefusedFile);
}

void write_refused_start(const fs::path& directory, const RunResult& result) {
  static_cast<void>(write_result_file(directory / kRefusedFile, result));
}

void forget_refused_start(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory / kRefusedFile, ignored);
}

}  // namespace footplate
