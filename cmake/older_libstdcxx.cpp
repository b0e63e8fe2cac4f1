// footplate-rank is linked with --wrap for this one function, the only one that asks for libstdc++ 12:
// elsewhere wheels may find that of GCC 11 (manylinux_2_34). It does what libstdc++'s own does.
#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <mutex>

void wait_as_before(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) __asm__(
    "__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

void wait_as_before(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) {
  if (::pthread_cond_wait(condition->native_handle(), lock->mutex()->native_handle()) != 0) std::terminate();
}
