#pragma once

#include <mutex>

// What clang's thread-safety analysis reads; nothing for other compilers. scripts/lint has clang look at it.
#if defined(__clang__)
#define FOOTPLATE_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define FOOTPLATE_THREAD_SAFETY(attribute)
#endif
#define GUARDED_BY(mutex) FOOTPLATE_THREAD_SAFETY(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) FOOTPLATE_THREAD_SAFETY(pt_guarded_by(mutex))
#define REQUIRES(...) FOOTPLATE_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) FOOTPLATE_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) FOOTPLATE_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define RELEASE(...) FOOTPLATE_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define RETURN_CAPABILITY(mutex) FOOTPLATE_THREAD_SAFETY(lock_returned(mutex))
#define NO_THREAD_SAFETY_ANALYSIS FOOTPLATE_THREAD_SAFETY(no_thread_safety_analysis)

namespace footplate {

/// std::mutex that the compiler knows: a member declared GUARDED_BY(mutex_) is touched only where it is
/// locked.
class FOOTPLATE_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex as long as it lives, but between unlock() and lock().
class FOOTPLATE_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() RELEASE() { lock_.unlock(); }
  void lock() ACQUIRE() { lock_.lock(); }

  /// For a condition variable, which gives the mutex up while it waits.
  std::unique_lock<std::mutex>& underlying() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Gives a locked Mutex up as long as it lives, for a function that is called with the lock held.
class FOOTPLATE_THREAD_SAFETY(scoped_lockable) MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() RELEASE() { mutex_.lock(); }  // RELEASE: of this object, which takes the mutex again
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace footplate
