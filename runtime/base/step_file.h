#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace footplate {

/// The step that rank 0 is at, in a file mapped into its memory: storing it costs what a variable costs, and
/// whoever clears up after a killed run reads where it was, to the step
/// (console/launch/run_dir/missing_result.h). The file is one std::int64_t, named kStepFileName, in the run's
/// private folder.
class StepFile {
 public:
  /// Makes the file, with `step` in it. Null where the system refuses: the record then knows the step of the
  /// last metrics.
  static std::unique_ptr<StepFile> make(const std::filesystem::path& folder, std::int64_t step);

  ~StepFile();
  StepFile(const StepFile&) = delete;
  StepFile& operator=(const StepFile&) = delete;

  std::atomic<std::int64_t>* step() const { return step_; }

 private:
  explicit StepFile(std::atomic<std::int64_t>* step) : step_(step) {}

  std::atomic<std::int64_t>* step_;
};

}  // namespace footplate
