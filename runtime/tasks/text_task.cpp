#include "runtime/tasks/text_task.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/tasks/hosted_task.h"

namespace footplate {
namespace {

constexpr const char* kTables = "tables";

std::int64_t size(std::span<const std::uint8_t> text) {
  return static_cast<std::int64_t>(text.size());
}

GptShape shape_of(const v1::Values& settings) {
  const GptShape shape{settings.integer("model.layers"), settings.integer("model.heads"),
                       settings.integer("model.width"), settings.integer("model.context"),
                       settings.integer("model.vocabulary")};
  if (shape.width % shape.heads != 0)
    throw TaskError({ErrorKind::usage,
                     fmt::format("model.heads = {} does not divide model.width = {}: every head gets an "
                                 "equal part of the width",
                                 shape.heads, shape.width)});
  return shape;
}

Corpus open_corpus(const v1::Values& settings, std::int64_t context) {
  const std::string name = settings.text("data.corpus");
  auto corpus = Corpus::open(name);
  if (!corpus) throw TaskError(corpus.error());
  const std::uintmax_t bytes = corpus->training().size() + corpus->held_out().size();
  if (auto enough = Corpus::check_length(name, bytes, context); !enough) throw TaskError(enough.error());
  return *std::move(corpus);
}

}  // namespace

v1::Declaration TextTask::declare() {
  return {.unit = "tokens",
          .uses = {"model.layers", "model.heads", "model.width", "model.context", "model.vocabulary",
                   "data.corpus"},
          .metrics = {{.name = "accuracy", .in_training = false}}};
}

TextTask::TextTask(const v1::Host& host)
    : context_(shape_of(host.settings()).context),
      corpus_(open_corpus(host.settings(), context_)),
      model_(shape_of(host.settings()), host.seed(), host.device()) {}

std::vector<v1::Parameter> TextTask::parameters() {
  auto parameters = model_.parameters();
  for (v1::Parameter& parameter : parameters)
    if (parameter.name == "embedding.weight" || parameter.name == "positions.weight")
      parameter.group = kTables;
  return parameters;
}

std::vector<v1::Group> TextTask::groups() {
  return {{.name = kTables, .is_table = true}};
}

std::vector<v1::DataSet> TextTask::data() {
  const CorpusIdentity identity = corpus_.identity();
  return {{.name = "text",
           .training = size(corpus_.training()) - context_,
           .held_out = (size(corpus_.held_out()) - 1) / context_,
           .order = v1::Order::random,
           .epoch = static_cast<double>(size(corpus_.training())) / static_cast<double>(context_),
           .hash = identity.hash,
           .source = identity.path,
           .bytes = identity.bytes}};
}

/// Rows of bytes as int64 [samples, context + 1].
v1::Batch TextTask::load(const v1::Samples& samples) {
  const std::span<const std::uint8_t> text = samples.held_out ? corpus_.held_out() : corpus_.training();
  const std::int64_t stride = samples.held_out ? context_ : 1;
  const auto count = static_cast<std::int64_t>(samples.indexes.size());
  at::Tensor rows = at::empty({count, context_ + 1}, at::kLong);
  std::int64_t* to = rows.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : samples.indexes)
    to = std::copy_n(text.data() + index * stride, context_ + 1, to);
  return {.tensors = {std::move(rows)}, .weight = static_cast<double>(count * context_)};
}

at::Tensor TextTask::loss(const v1::Batch& batch, v1::Sums& /*sums*/) {
  return model_.loss_sum(batch.tensors[0]);
}

at::Tensor TextTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  const LossAndHits found = model_.loss_and_hits(batch.tensors[0]);
  sums.add("accuracy", found.hits);
  return found.loss;
}

std::string TextTask::runs_on(bool bf16) const {
  const std::string kernel = model_.attention_kernel(bf16 ? Precision::bf16 : Precision::fp32);
  return kernel.empty() ? "" : "attention: " + kernel;
}

}  // namespace footplate
