#include "runtime/tasks/text_task.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

namespace footplate {
namespace {

std::int64_t size(std::span<const std::uint8_t> text) {
  return static_cast<std::int64_t>(text.size());
}

/// Rows of bytes, one per place that `offset_of` names, as int64 [count, length].
template <class OffsetOf>
at::Tensor rows(std::span<const std::uint8_t> text, std::int64_t count, std::int64_t length,
                OffsetOf offset_of) {
  at::Tensor batch = at::empty({count, length}, at::kLong);
  std::int64_t* to = batch.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < count; ++row) to = std::copy_n(text.data() + offset_of(row), length, to);
  return batch;
}

}  // namespace

Result<std::unique_ptr<Task>> TextTask::make(const Settings& settings, int /*world_size*/,
                                             const ComputeDevice& device) {
  const GptShape shape{settings.integer("model.layers"), settings.integer("model.heads"),
                       settings.integer("model.width"), settings.integer("model.context"),
                       settings.integer("model.vocabulary")};
  if (shape.width % shape.heads != 0)
    return fail(ErrorKind::usage,
                fmt::format("model.heads = {} does not divide model.width = {}: every head gets an "
                            "equal part of the width",
                            shape.heads, shape.width));
  const std::string& name = settings.string("data.corpus");
  auto corpus = Corpus::open(name);
  if (!corpus) return tl::unexpected(corpus.error());
  const std::uintmax_t bytes = corpus->training().size() + corpus->held_out().size();
  if (auto enough = Corpus::check_length(name, bytes, shape.context); !enough)
    return tl::unexpected(enough.error());
  const auto seed = static_cast<std::uint64_t>(settings.integer("run.seed"));
  return std::unique_ptr<Task>(new TextTask(std::move(*corpus), shape, seed, device));
}

TextTask::TextTask(Corpus corpus, const GptShape& shape, std::uint64_t seed, const ComputeDevice& device)
    : device_(device),
      corpus_(std::move(corpus)),
      context_(shape.context),
      seed_(seed),
      model_(shape, seed, device.where()) {}

at::Tensor TextTask::load(Slice samples) {
  const std::int64_t positions = size(corpus_.training()) - context_;
  return device_.bring(rows(corpus_.training(), samples.size(), context_ + 1, [&](std::int64_t row) {
    return sample_offset(seed_, samples.first + row, positions);
  }));
}

at::Tensor TextTask::load_held_out(std::span<const std::int64_t> samples) {
  return device_.bring(
      rows(corpus_.held_out(), static_cast<std::int64_t>(samples.size()), context_ + 1,
           [&](std::int64_t row) { return samples[static_cast<std::size_t>(row)] * context_; }));
}

std::int64_t TextTask::held_out_samples() const {
  return (size(corpus_.held_out()) - 1) / context_;
}

at::Tensor TextTask::loss(const at::Tensor& batch) {
  return model_.loss_sum(batch);
}

double TextTask::samples_per_epoch() const {
  return static_cast<double>(size(corpus_.training())) / static_cast<double>(context_);
}

}  // namespace footplate
