#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "footplate/task.h"
#include "protocol/messages/enum_words.h"
#include "protocol/mutex.h"
#include "runtime/device/compute_device.h"

namespace footplate {

/// Where data.cache keeps samples.
enum class CachePlace { none, host, device };
template <>
struct EnumWords<CachePlace> {
  static constexpr std::array kAll{std::pair{CachePlace::none, std::string_view("none")},
                                   std::pair{CachePlace::host, std::string_view("host")},
                                   std::pair{CachePlace::device, std::string_view("device")}};
};

/// Samples as load() gave them, a row of a tensor for each, in the memory of the processors or of a device.
/// First come, first kept, as many as there is room for. Any thread that has entered the device.
class SampleCache {
 public:
  /// `device`: where the rows are; it outlives this. `log`: a line for people, for each data set.
  SampleCache(std::vector<v1::DataSet> sets, const ComputeDevice& device, std::int64_t most_bytes,
              std::function<void(const std::string&)> log)
      : sets_(std::move(sets)), device_(device), room_(most_bytes), log_(std::move(log)) {}

  /// The positions in `samples` of those that it doesn't have. What it has it keeps.
  std::vector<std::size_t> missing(const v1::Samples& samples) const;

  /// The batch of `samples`. `loaded`, on this device, is what load() gave for those at `positions`; it is
  /// kept as far as there is room, and the others are here. Throws where load() didn't give a row for each
  /// sample, or rows of other shapes or weights than before. `pinned`: as of bring().
  v1::Batch complete(const v1::Samples& samples, std::span<const std::size_t> positions, v1::Batch loaded,
                     bool pinned);

 private:
  /// Of a data set, or of what is held out of it.
  struct Rows {
    std::vector<at::Tensor> tensors;  ///< one after the other, in the order in which they came
    double weight = 0;                ///< of each
    std::int64_t capacity = 0, kept = 0;
    std::vector<std::int64_t> slot_of;  ///< by index; -1: not here
  };
  using Key = std::pair<int, bool>;

  static Key key_of(const v1::Samples& samples) { return {samples.set, samples.held_out}; }
  void make_rows(const v1::Samples& samples, const v1::Batch& loaded, std::int64_t count, Rows& rows)
      REQUIRES(mutex_);
  void keep(const v1::Samples& samples, std::span<const std::size_t> positions, const v1::Batch& loaded,
            bool pinned, Rows& rows) REQUIRES(mutex_);
  at::Tensor numbers(const std::vector<std::int64_t>& values, bool pinned) const;

  const std::vector<v1::DataSet> sets_;
  const ComputeDevice& device_;
  mutable Mutex mutex_;
  std::int64_t room_ GUARDED_BY(mutex_);  ///< bytes
  std::map<Key, Rows> rows_ GUARDED_BY(mutex_);
  const std::function<void(const std::string&)> log_;
};

}  // namespace footplate
