#include "runtime/tasks/sample_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace footplate {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kRounding = 1e-9;  ///< of a sum of weights

[[noreturn]] void not_rows(const std::string& why) {
  throw std::invalid_argument("data.cache: load() " + why +
                              "; a task that is cacheable gives each tensor a row for each sample, and all "
                              "samples of a data set rows "
                              "of one shape and one weight (docs/own-models.md)");
}

std::int64_t bytes_of_row(const v1::Batch& loaded, std::int64_t count) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : loaded.tensors) bytes += static_cast<std::int64_t>(tensor.nbytes()) / count;
  return bytes;
}

void check_rows(const v1::Batch& loaded, std::int64_t count) {
  for (const at::Tensor& tensor : loaded.tensors)
    if (tensor.dim() == 0 || tensor.size(0) != count)
      not_rows(fmt::format("gave a tensor of {} for {} samples",
                           tensor.dim() == 0 ? "one number" : fmt::format("{} rows", tensor.size(0)), count));
}

/// Where the samples of a batch are to be had from.
struct Places {
  std::vector<std::int64_t> kept = {};    ///< positions in the batch
  std::vector<std::int64_t> slots = {};   ///< of these, in the rows that are kept
  std::vector<std::int64_t> loaded = {};  ///< positions of the others
};

at::Tensor merged(const at::Tensor& at, const at::Tensor& rows, const at::Tensor& other_at,
                  const at::Tensor& other_rows) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes.front() += other_rows.size(0);
  at::Tensor all = at::empty(sizes, rows.options());
  all.index_copy_(0, at, rows);
  return all.index_copy_(0, other_at, other_rows);
}

void check_like(const std::vector<at::Tensor>& kept, double weight, const v1::Batch& loaded,
                std::int64_t count) {
  const bool same = kept.size() == loaded.tensors.size() &&
                    std::ranges::equal(kept, loaded.tensors, [](const at::Tensor& a, const at::Tensor& b) {
                      return a.scalar_type() == b.scalar_type() && a.sizes().slice(1) == b.sizes().slice(1);
                    });
  if (!same) not_rows("gave tensors of other shapes or types than before");
  const double expected = weight * static_cast<double>(count);
  if (std::abs(loaded.weight - expected) > kRounding * expected)
    not_rows(fmt::format("gave the weight {} for {} samples, and {} for one before", loaded.weight, count,
                         weight));
}

}  // namespace

std::vector<std::size_t> SampleCache::missing(const v1::Samples& samples) const {
  std::vector<std::size_t> positions;
  const MutexLock lock(mutex_);
  const auto found = rows_.find(key_of(samples));
  const bool none = found == rows_.end() || found->second.slot_of.empty();
  for (std::size_t i = 0; i < samples.indexes.size(); ++i)
    if (none || found->second.slot_of[static_cast<std::size_t>(samples.indexes[i])] < 0)
      positions.push_back(i);
  return positions;
}

/// Where there is no memory for all that it may have, it has none.
void SampleCache::make_rows(const v1::Samples& samples, const v1::Batch& loaded, std::int64_t count,
                            Rows& rows) {
  const v1::DataSet& set = sets_[static_cast<std::size_t>(samples.set)];
  const std::int64_t all = samples.held_out ? set.held_out : set.training;
  const std::int64_t bytes = std::max<std::int64_t>(1, bytes_of_row(loaded, count));
  rows.weight = loaded.weight / static_cast<double>(count);
  rows.slot_of.assign(static_cast<std::size_t>(all), -1);
  rows.capacity = std::min(all, room_ / bytes);
  std::string why = "data.cache_mib has no room for more";
  try {
    for (const at::Tensor& tensor : loaded.tensors) {
      std::vector<std::int64_t> sizes = tensor.sizes().vec();
      sizes.front() = rows.capacity;
      rows.tensors.push_back(at::empty(sizes, tensor.options()));
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    why = "there is no memory for them";
    rows.capacity = 0;
    rows.tensors.clear();
    for (const at::Tensor& tensor : loaded.tensors) rows.tensors.push_back(tensor.narrow(0, 0, 0));
  }
  room_ -= rows.capacity * bytes;
  if (log_)
    log_(fmt::format("data.cache keeps {} of the {} {} samples of {} on {}, {:.1f} MiB{}", rows.capacity, all,
                     samples.held_out ? "held-out" : "training", set.name, device_.description(),
                     static_cast<double>(rows.capacity * bytes) / kMebibyte,
                     rows.capacity < all ? "; the others are loaded as always: " + why : ""));
}

/// What fails on the way keeps none of them.
void SampleCache::keep(const v1::Samples& samples, std::span<const std::size_t> positions,
                       const v1::Batch& loaded, bool pinned, Rows& rows) {
  std::vector<std::int64_t> from, to, indexes;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t index = samples.indexes[positions[i]];
    const std::int64_t slot = rows.kept + static_cast<std::int64_t>(to.size());
    if (slot == rows.capacity) break;
    // Another batch may have brought it, or this one has it twice.
    if (rows.slot_of[static_cast<std::size_t>(index)] >= 0 ||
        std::ranges::find(indexes, index) != indexes.end())
      continue;
    from.push_back(static_cast<std::int64_t>(i));
    to.push_back(slot);
    indexes.push_back(index);
  }
  if (to.empty()) return;
  const at::Tensor rows_from = numbers(from, pinned), rows_to = numbers(to, pinned);
  for (std::size_t i = 0; i < rows.tensors.size(); ++i)
    rows.tensors[i].index_copy_(0, rows_to, loaded.tensors[i].index_select(0, rows_from));
  for (std::size_t i = 0; i < to.size(); ++i) rows.slot_of[static_cast<std::size_t>(indexes[i])] = to[i];
  rows.kept += static_cast<std::int64_t>(to.size());
}

v1::Batch SampleCache::complete(const v1::Samples& samples, std::span<const std::size_t> positions,
                                v1::Batch loaded, bool pinned) {
  const auto count = static_cast<std::int64_t>(positions.size());
  const auto all = static_cast<std::int64_t>(samples.indexes.size());
  Places places{.loaded = {positions.begin(), positions.end()}};
  v1::Batch whole;
  {
    const MutexLock lock(mutex_);
    if (count > 0) check_rows(loaded, count);
    Rows& rows = rows_[key_of(samples)];
    if (count > 0) {
      if (rows.slot_of.empty()) make_rows(samples, loaded, count, rows);
      check_like(rows.tensors, rows.weight, loaded, count);
      keep(samples, positions, loaded, pinned, rows);
    }
    if (count == all) return loaded;
    // Rows that are there are never written again: they are read without the lock.
    whole.tensors = rows.tensors;
    whole.weight = rows.weight * static_cast<double>(all);
    for (std::size_t i = 0; i < samples.indexes.size(); ++i) {
      if (std::ranges::binary_search(positions, i)) continue;
      places.kept.push_back(static_cast<std::int64_t>(i));
      places.slots.push_back(rows.slot_of[static_cast<std::size_t>(samples.indexes[i])]);
    }
  }
  const at::Tensor slots = numbers(places.slots, pinned);
  const at::Tensor kept = numbers(places.kept, pinned), others = numbers(places.loaded, pinned);
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
    const at::Tensor here = whole.tensors[i].index_select(0, slots);
    whole.tensors[i] = count == 0 ? here : merged(kept, here, others, loaded.tensors[i]);
  }
  return whole;
}

at::Tensor SampleCache::numbers(const std::vector<std::int64_t>& values, bool pinned) const {
  return device_.bring(at::tensor(values), pinned);
}

}  // namespace footplate
