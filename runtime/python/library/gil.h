#pragma once

#include <Python.h>

namespace footplate {

/// Python's lock, for a block. The thread's state outlives it, and with it what Python keeps for each thread;
/// it goes when the thread ends.
class Gil {
 public:
  Gil() {
    static thread_local KeptThread kept;
    state_ = PyGILState_Ensure();
    PyErr_Clear();  // what a backward pass has left there was told as its exception
  }
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  class KeptThread {
   public:
    KeptThread() : is_new_(PyGILState_GetThisThreadState() == nullptr) {
      if (!is_new_) return;
      first_ = PyGILState_Ensure();
      state_ = PyEval_SaveThread();
    }
    ~KeptThread() {
      if (!is_new_) return;
      PyEval_RestoreThread(state_);
      PyGILState_Release(first_);
    }
    KeptThread(const KeptThread&) = delete;
    KeptThread& operator=(const KeptThread&) = delete;

   private:
    const bool is_new_;
    PyGILState_STATE first_{};
    PyThreadState* state_ = nullptr;
  };
  PyGILState_STATE state_{};
};

}  // namespace footplate
