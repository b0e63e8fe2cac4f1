#include "runtime/base/give_way.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace footplate {
namespace {

constexpr int kNiceness = 10;

}  // namespace

void give_way_to_training() {
  // Linux: of this thread alone.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNiceness));
}

}  // namespace footplate
