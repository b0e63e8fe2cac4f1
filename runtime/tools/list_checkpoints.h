#pragma once

#include <filesystem>
#include <string>

namespace footplate {

/// What `footplate inspect` wants to know.
struct InspectOptions {
  std::filesystem::path path;  ///< of a checkpoint's folder, or of a run's; empty: nothing
  std::string ref;             ///< of a run: one of its checkpoints, as for find_checkpoint; empty: all
  bool verify = false;         ///< read every byte
  bool tensors = false;        ///< list them
};

/// Prints a line of JSON. Of a run: {"run": path, "checkpoints": [of each, those of the branch saved into
/// last first, the newest first: "path", "bytes", and either "error" or what its manifest says]}. Of one
/// checkpoint: {"path", "bytes", "manifest", "tensors" where wanted: [{"name", "type", "shape", "bytes",
/// "file"}]}. "verified": true where every byte was read. Starts neither LibTorch nor MPI. Returns the exit
/// code: 0; 1 where a checkpoint is damaged, 2 where there is none: of one it prints only {"error": why}.
int inspect(const InspectOptions& options);

}  // namespace footplate
