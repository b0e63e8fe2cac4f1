#include "runtime/tasks/classify_task.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>

#include "protocol/json.h"
#include "runtime/data/corpus_cache.h"
#include "runtime/tasks/hosted_task.h"

namespace footplate {
namespace {

struct KnownSet {
  const char* name;
  double share;
  const char* help;
  const char* installed;  ///< a path, or the name of a file in the cache
  const char* source;
};
constexpr std::array kKnownSets{
    KnownSet{"fashion", 16, "Fashion-MNIST: 60,000 images of clothes, 28 x 28, and 10,000 that are held out.",
             "/usr/share/datasets/fashion-mnist", "Debian's package dataset-fashion-mnist"},
    KnownSet{"digits", 3, "Handwritten digits of 8 x 8: 1,797 rows of 64 numbers, every fifth is held out.",
             "digits.csv.gz", "a file of scikit-learn's wheel"},
    KnownSet{"cancer", 1, "Diagnoses of breast cancer: 569 rows of 30 numbers, every fifth is held out.",
             "breast_cancer.csv", "a file of scikit-learn's wheel"}};

/// A number of a table is taken for this many deviations at most: a column that hardly ever changes in what
/// is trained on would drown the others.
constexpr double kMostDeviations = 5;
constexpr std::int64_t kCountedAtOnce = 500;  ///< samples of task.confusion

std::string path_of(const KnownSet& known, const std::string& given) {
  std::error_code error;
  if (!given.empty()) {
    if (std::filesystem::exists(given, error)) return given;
    throw TaskError({ErrorKind::usage,
                     fmt::format("task.{} = \"{}\": there is no such file or folder (from {}); it is a CSV "
                                 "file with the label last, a folder with the four IDX files of MNIST's "
                                 "names, or \"\": what scripts/deps --data installs",
                                 known.name, given, std::filesystem::current_path(error).string())});
  }
  std::string path = known.installed;
  if (!path.starts_with('/')) {
    const auto cached = cached_corpus_path(path);
    if (!cached) throw TaskError(cached.error());
    path = cached->string();
  }
  if (std::filesystem::exists(path, error)) return path;
  throw TaskError({ErrorKind::usage,
                   fmt::format("the data set '{0}' isn't here: there is no {1} ({2}); scripts/deps --data "
                               "installs it, or set task.{0} to a file or folder of your own",
                               known.name, path, known.source)});
}

std::vector<LabelledSet> open_sets(const v1::Values& settings) {
  std::vector<LabelledSet> sets;
  for (const KnownSet& known : kKnownSets) {
    const std::string setting = fmt::format("task.{}", known.name);
    auto set = LabelledSet::open(path_of(known, settings.text(setting)));
    if (!set) throw TaskError({set.error().kind, fmt::format("{}: {}", setting, set.error().message)});
    sets.push_back(*std::move(set));
  }
  return sets;
}

std::vector<ClassifiedSet> shapes_of(const std::vector<LabelledSet>& sets) {
  std::vector<ClassifiedSet> shapes;
  for (std::size_t i = 0; i < sets.size(); ++i)
    shapes.push_back({.name = kKnownSets[i].name, .shape = sets[i].shape(), .classes = sets[i].classes()});
  return shapes;
}

std::vector<v1::SettingDecl> settings_of_classifier() {
  std::vector<v1::SettingDecl> all;
  for (const KnownSet& known : kKnownSets)
    all.push_back({.name = known.name,
                   .initial = "\"\"",
                   .help = fmt::format(
                       "The path of this data set: a CSV file of numbers with the label last, of which every "
                       "fifth row is held out, or a folder with the four IDX files of MNIST's names. "
                       "Nothing: {}, as scripts/deps --data installs it.",
                       known.source),
                   .applies = "fixed"});
  all.push_back({.name = "width",
                 .initial = "128",
                 .help = "The trunk, which all data sets share, has this width.",
                 .min = 1,
                 .max = 16384,
                 .usual_max = 2048,
                 .aliases = {"hidden_dim", "hidden_size"},
                 .applies = "fixed"});
  all.push_back(
      {.name = "channels",
       .initial = "16",
       .help = "The first convolution of images has so many channels, the second one twice as many.",
       .min = 1,
       .max = 4096,
       .usual_max = 256,
       .applies = "fixed"});
  all.push_back({.name = "smoothing",
                 .initial = "0.1",
                 .help = "Labels are smoothed: this part of each is spread over all classes.",
                 .min = 0,
                 .max = 0.9,
                 .usual_max = 0.3,
                 .aliases = {"label_smoothing"}});
  return all;
}

/// Copies of the samples with these indexes: [samples, …].
at::Tensor rows_of(const LabelledSet& set, const v1::Samples& samples) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(samples.indexes.size())};
  shape.insert(shape.end(), set.shape().begin(), set.shape().end());
  const auto copied = [&](const auto& values) {
    using Value = typename std::decay_t<decltype(values)>::value_type;
    at::Tensor rows = at::empty(shape, c10::CppTypeToScalarType<Value>::value);
    Value* to = rows.mutable_data_ptr<Value>();
    for (const std::int64_t index : samples.indexes)
      to = std::copy_n(values.data() + index * set.numbers(), set.numbers(), to);
    return rows;
  };
  return std::visit(copied, set.part(samples.held_out).samples);
}

at::Tensor as_tensor(const std::vector<float>& values, at::Device where) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::ranges::copy(values, tensor.mutable_data_ptr<float>());
  return tensor.to(where);
}

std::size_t set_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(kKnownSets, [&](const KnownSet& known) { return known.name == name; });
  if (found == kKnownSets.end()) {
    std::vector<std::string> names;
    for (const KnownSet& known : kKnownSets) names.emplace_back(known.name);
    throw std::runtime_error(fmt::format("of is \"{}\"; the data sets are {}", name, fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - kKnownSets.begin());
}

}  // namespace

v1::Declaration ClassifyTask::declare() {
  v1::Declaration declaration{
      .unit = "samples",
      .settings = settings_of_classifier(),
      .actions = {{.name = "confusion",
                   .help = "Counts what the held-out samples of a data set are taken for: a row for each "
                           "class, with a column for each answer.",
                   .params = {{.name = "of",
                               .kind = "string",
                               .initial = "\"fashion\"",
                               .help = "Which data set."}}}},
      .metrics = {{.name = "accuracy"}},
      .cacheable = true};
  for (const KnownSet& known : kKnownSets)
    declaration.sets.push_back({.name = known.name, .share = known.share, .help = known.help});
  return declaration;
}

ClassifyTask::ClassifyTask(const v1::Host& host)
    : sets_(open_sets(host.settings())),
      scales_(make_scales(host.device())),
      model_({.width = host.settings().integer("task.width"),
              .channels = host.settings().integer("task.channels")},
             shapes_of(sets_), host.seed(), host.device()) {}

std::vector<ClassifyTask::Scale> ClassifyTask::make_scales(at::Device where) const {
  std::vector<Scale> scales;
  for (const LabelledSet& set : sets_)
    scales.push_back({as_tensor(set.mean(), where), as_tensor(set.deviation(), where)});
  return scales;
}

/// As optim.weight_decay has it for other matrices.
std::vector<v1::Group> ClassifyTask::groups() {
  return {{.name = Classifier::kHeads, .is_table = true}};
}

std::vector<v1::State> ClassifyTask::state() {
  std::vector<v1::State> all;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    all.push_back({fmt::format("{}.mean", kKnownSets[i].name), scales_[i].mean});
    all.push_back({fmt::format("{}.deviation", kKnownSets[i].name), scales_[i].deviation});
  }
  return all;
}

std::vector<v1::DataSet> ClassifyTask::data() {
  std::vector<v1::DataSet> all;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const CorpusIdentity& identity = sets_[i].identity();
    all.push_back({.name = kKnownSets[i].name,
                   .training = sets_[i].training(),
                   .held_out = sets_[i].held_out(),
                   .hash = identity.hash,
                   .source = identity.path,
                   .bytes = identity.bytes});
  }
  return all;
}

v1::Batch ClassifyTask::load(const v1::Samples& samples) {
  const LabelledSet& set = sets_[static_cast<std::size_t>(samples.set)];
  const auto count = static_cast<std::int64_t>(samples.indexes.size());
  at::Tensor labels = at::empty({count}, at::kLong);
  const auto& all = set.part(samples.held_out).labels;
  std::ranges::transform(samples.indexes, labels.mutable_data_ptr<std::int64_t>(),
                         [&](std::int64_t index) { return all[static_cast<std::size_t>(index)]; });
  return {.tensors = {rows_of(set, samples), std::move(labels)}, .weight = static_cast<double>(count)};
}

at::Tensor ClassifyTask::logits(const v1::Batch& batch) const {
  const auto set = static_cast<std::size_t>(batch.set);
  const Scale& scale = scales_[set];
  at::Tensor x = batch.tensors[0].to(at::kFloat).sub(scale.mean).div(scale.deviation);
  if (!sets_[set].has_images()) x = x.clamp(-kMostDeviations, kMostDeviations);
  return model_.logits(set, x).to(at::kFloat);
}

at::Tensor ClassifyTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  const at::Tensor answers = logits(batch);
  sums.add("accuracy", answers.detach().argmax(1).eq(batch.tensors[1]).sum());
  return at::cross_entropy_loss(answers, batch.tensors[1], {}, at::Reduction::Sum, /*ignore_index=*/-100,
                                smoothing_);
}

at::Tensor ClassifyTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  const at::Tensor answers = logits(batch);
  sums.add("accuracy", answers.argmax(1).eq(batch.tensors[1]).sum());
  return at::cross_entropy_loss(answers, batch.tensors[1], {}, at::Reduction::Sum);
}

void ClassifyTask::changed(const v1::Values& now, std::int64_t /*step*/) {
  smoothing_ = now.number("task.smoothing");
}

std::string ClassifyTask::call(const std::string& /*action*/, const v1::Arguments& arguments,
                               std::int64_t /*step*/) {
  const at::NoGradGuard no_grad;
  return confusion(set_named(arguments.text("of")));
}

std::string ClassifyTask::confusion(std::size_t set) const {
  const LabelledSet& data = sets_[set];
  const auto classes = static_cast<std::size_t>(data.classes());
  std::vector<std::vector<std::int64_t>> counts(classes, std::vector<std::int64_t>(classes));
  for (std::int64_t first = 0; first < data.held_out(); first += kCountedAtOnce) {
    std::vector<std::int64_t> indexes(
        static_cast<std::size_t>(std::min(kCountedAtOnce, data.held_out() - first)));
    std::iota(indexes.begin(), indexes.end(), first);
    const v1::Samples samples{
        .set = static_cast<int>(set), .held_out = true, .indexes = indexes, .draws = indexes};
    const at::Tensor rows = rows_of(data, samples).to(scales_[set].mean.device());
    const at::Tensor answers = logits({.tensors = {rows}, .set = samples.set}).argmax(1).cpu();
    for (std::size_t i = 0; i < indexes.size(); ++i) {
      const auto label = data.part(true).labels[static_cast<std::size_t>(indexes[i])];
      ++counts[label][static_cast<std::size_t>(answers.const_data_ptr<std::int64_t>()[i])];
    }
  }
  return Json{{"set", kKnownSets[set].name}, {"samples", data.held_out()}, {"confusion", counts}}.dump();
}

}  // namespace footplate
