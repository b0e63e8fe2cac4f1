#include "runtime/base/step_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "protocol/step_file_name.h"

namespace footplate {
namespace {

using Step = std::atomic<std::int64_t>;
static_assert(Step::is_always_lock_free && sizeof(Step) == sizeof(std::int64_t),
              "another process reads the file as a plain number");

}  // namespace

std::unique_ptr<StepFile> StepFile::make(const std::filesystem::path& folder, std::int64_t step) {
  const int fd =
      ::open((folder / kStepFileName).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  // posix_fallocate and not ftruncate: on a full disk a store into a hole would end the process (SIGBUS).
  if (::posix_fallocate(fd, 0, sizeof(Step)) == 0)
    memory = ::mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<StepFile>(new StepFile(new (memory) Step(step)));
}

StepFile::~StepFile() {
  ::munmap(step_, sizeof(Step));
}

}  // namespace footplate
