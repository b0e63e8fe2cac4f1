#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "runtime/comm/shares.h"

namespace footplate {

/// Where each parameter's gradient lies in one dimension: in reverse parameter order (about the order in
/// which backward makes them), each at a block's alignment (comm/shares.h). Whether there is memory for all
/// of that at once is its user's business.
class GradientLayout {
 public:
  /// `ranks`: among so many the elements can be cut.
  explicit GradientLayout(const std::vector<v1::Parameter>& parameters, int ranks = 1);

  /// With those between parameters, and at the end, that are there for alignment.
  std::int64_t elements() const { return starts_.back(); }
  std::size_t parameters() const { return sizes_.size(); }
  /// Where a parameter is among those that were given; by reversed order.
  std::size_t declared(std::size_t parameter) const { return parameters() - 1 - parameter; }
  /// What a parameter has; by reversed order.
  Stretch of(std::size_t parameter) const {
    return {starts_[parameter], starts_[parameter] + sizes_[parameter]};
  }
  /// The same; by its name.
  Stretch of(const std::string& name) const { return of(by_name_.at(name)); }
  /// A rank's share of it.
  std::vector<Stretch> blocks(int rank) const { return blocks_of(elements(), ranks_, rank); }

  /// What is reduced at once.
  struct Bucket {
    Stretch elements;
    std::size_t first = 0, last = 0;  ///< its parameters, as [first, last) of reversed order
  };
  /// Cut at parameters into buckets of at least so many elements (the last may have fewer), in order. At
  /// least one.
  std::vector<Bucket> buckets(std::int64_t at_least) const;
  /// The same at stripes (comm/shares.h): a parameter may be in several. None where there are no elements.
  std::vector<Bucket> buckets_of_stripes(std::int64_t at_least) const;

 private:
  int ranks_;
  std::vector<std::int64_t> starts_;  ///< by reversed order; one more: the end
  std::vector<std::int64_t> sizes_;
  std::map<std::string, std::size_t> by_name_;
};

/// In gradients of so many MiB.
constexpr std::int64_t elements_of_mb(double mb) {
  return static_cast<std::int64_t>(mb * 1024 * 1024 / sizeof(float));
}

}  // namespace footplate
