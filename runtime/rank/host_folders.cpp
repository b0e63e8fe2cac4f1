#include "runtime/rank/host_folders.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "protocol/host_name.h"
#include "run_files/run_file.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr const char* kFolderVariable = "FOOTPLATE_DOORBELL_DIR";
constexpr auto kFileSystemIsLate = 5s;  ///< for a file that this host hasn't looked for yet
constexpr auto kBetweenLooks = 200ms;

}  // namespace

Result<HostFolders> HostFolders::open() {
  HostFolders found;
  const char* given = std::getenv(kFolderVariable);
  if (given == nullptr || *given == '\0') return found;
  found.folders_.temporary = given;
  const auto usual = PrivateFolders::of(found.run_id());
  if (usual.temporary != found.folders_.temporary || usual.are_launchers()) return found;
  found.folders_ = usual;
  auto lock = usual.share();
  if (!lock) return tl::unexpected(lock.error());
  found.lock_ = *lock;
  sweep_abandoned_folders();  // in a base whose owner is known now
  // One for all ranks of the host: whose folder this is.
  const auto cleared = usual.temporary / "cleared";
  if (::mkdir(cleared.c_str(), 0700) == 0 && !remove_when_abandoned(usual)) ::rmdir(cleared.c_str());
  return found;
}

Result<void> check_shared(const std::filesystem::path& run_directory, const HostFolders& folders) {
  if (!folders.are_remote()) return {};
  const auto give_up = std::chrono::steady_clock::now() + kFileSystemIsLate;
  for (;;) {
    const auto record = read_run_file(run_directory);
    if (record && record->id == folders.run_id()) return {};
    if (std::chrono::steady_clock::now() > give_up) break;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return fail(
      ErrorKind::usage,
      fmt::format("host {} doesn't see the run's folder {}: all hosts of a run have to share it; name "
                  "a folder on a shared disk: FOOTPLATE_RUNS=/shared/runs footplate run …",
                  host_name(), run_directory.string()));
}

}  // namespace footplate
