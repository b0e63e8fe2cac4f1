#include "run_files/run_fence.h"

#include "run_files/file_names.h"
#include "run_files/run_file.h"

namespace footplate {

bool RunFence::holds() const {
  if (id_.empty()) return true;
  if (is_taken_over()) return false;
  std::error_code ignored;
  if (std::filesystem::exists(config_path(directory_, start_ + 1), ignored)) return false;
  return terms_.includes(origin_);
}

bool RunFence::is_taken_over() const {
  const auto record = read_run_file(directory_);
  return !id_.empty() && record && !record->id.empty() && record->id != id_;
}

}  // namespace footplate
