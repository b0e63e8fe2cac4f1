#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "footplate/task.h"
#include "protocol/mutex.h"

namespace footplate {

/// Settings that Python may read for as long as this lives, and no longer: what it keeps of them says so.
class OpenValues {
 public:
  explicit OpenValues(const v1::Values& values) : shared_(std::make_shared<Shared>(&values)) {}
  ~OpenValues() { shared_->close(); }
  OpenValues(const OpenValues&) = delete;
  OpenValues& operator=(const OpenValues&) = delete;

  class Shared {
   public:
    explicit Shared(const v1::Values* values) : values_(values) {}
    void close() {
      const MutexLock lock(mutex_);
      values_ = nullptr;
    }
    /// Throws KeyError. With the GIL.
    pybind11::object read(const std::string& name) const;

   private:
    mutable Mutex mutex_;
    const v1::Values* values_ GUARDED_BY(mutex_);
  };
  std::shared_ptr<const Shared> shared() const { return shared_; }

 private:
  const std::shared_ptr<Shared> shared_;
};

/// read(name), for footplate.Settings. With the GIL.
pybind11::object reader(std::shared_ptr<const OpenValues::Shared> values);

}  // namespace footplate
