#include "runtime/data/labelled_set.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <system_error>
#include <utility>

#include "runtime/data/idx.h"
#include "runtime/data/labelled_csv.h"

namespace footplate {
namespace {

constexpr std::size_t kEveryFifth = 5;  ///< row of a table is held out
constexpr std::int64_t kLeastSide = 4;  ///< of an image: two strides of two leave something

tl::unexpected<Error> bad_set(const std::string& where, const std::string& what) {
  return fail(ErrorKind::usage, fmt::format("{} {}", where, what));
}

/// The file of that name, plain or else gzipped.
Result<std::filesystem::path> plain_or_gzip(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  for (const std::string& suffix : {std::string(), std::string(".gz")})
    if (const auto path = folder / (name + suffix); std::filesystem::exists(path, error)) return path;
  return bad_set(folder.string(), fmt::format("has neither {0} nor {0}.gz; a folder of images has the files "
                                              "train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                                              "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or "
                                              "with .gz",
                                              name));
}

struct LabelledImages {
  LabelledSet::Part part;
  std::vector<std::int64_t> shape;  ///< [rows, columns]
};

/// `prefix`: "train" or "t10k".
Result<LabelledImages> images_and_labels(const std::filesystem::path& folder, const std::string& prefix) {
  const auto images_path = plain_or_gzip(folder, prefix + "-images-idx3-ubyte");
  if (!images_path) return tl::unexpected(images_path.error());
  const auto labels_path = plain_or_gzip(folder, prefix + "-labels-idx1-ubyte");
  if (!labels_path) return tl::unexpected(labels_path.error());
  auto images = read_idx(*images_path, 3);
  if (!images) return tl::unexpected(images.error());
  const auto labels = read_idx(*labels_path, 1);
  if (!labels) return tl::unexpected(labels.error());
  if (images->shape[0] != labels->shape[0])
    return bad_set(images_path->string(),
                   fmt::format("has {} images, and {} has {} labels: they have to be as many",
                               images->shape[0], labels_path->string(), labels->shape[0]));
  if (std::min(images->shape[1], images->shape[2]) < kLeastSide)
    return bad_set(images_path->string(),
                   fmt::format("has images of {} x {}; {} x {} are the least that the model can take",
                               images->shape[1], images->shape[2], kLeastSide, kLeastSide));
  return LabelledImages{.part = {.samples = std::move(images->values),
                                 .labels = {labels->values.begin(), labels->values.end()}},
                        .shape = {images->shape[1], images->shape[2]}};
}

std::uint64_t hash_of_part(const LabelledSet::Part& part, std::uint64_t seed) {
  const auto of = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    seed = XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  };
  std::visit(of, part.samples);
  of(part.labels);
  return seed;
}

std::uint64_t bytes_of_part(const LabelledSet::Part& part) {
  return std::visit([](const auto& values) { return std::as_bytes(std::span(values)).size(); }, part.samples);
}

/// Mean and deviation of every `stride`-th value from `first` on. A column that never changes has 1.
std::pair<float, float> moments(const auto& values, std::size_t first, std::size_t stride) {
  double sum = 0, squares = 0;
  for (std::size_t i = first; i < values.size(); i += stride) sum += static_cast<double>(values[i]);
  const double count = static_cast<double>(values.size() / stride), mean = sum / count;
  for (std::size_t i = first; i < values.size(); i += stride) {
    const double off = static_cast<double>(values[i]) - mean;
    squares += off * off;
  }
  const auto deviation = static_cast<float>(std::sqrt(squares / count));
  return {static_cast<float>(mean), deviation > 0 ? deviation : 1.0F};
}

/// The first label that is `classes` or above; its place, else the number of labels.
std::size_t first_beyond(const std::vector<std::uint16_t>& labels, std::int64_t classes) {
  return static_cast<std::size_t>(
      std::ranges::find_if(labels, [&](std::uint16_t label) { return label >= classes; }) - labels.begin());
}

}  // namespace

std::int64_t LabelledSet::numbers() const {
  return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
}

Result<LabelledSet> LabelledSet::open(const std::string& path) {
  std::error_code error;
  auto set = std::filesystem::is_directory(path, error) ? images_in(path) : table_of(path);
  if (!set) return set;
  if (auto finished = set->finish(path); !finished) return tl::unexpected(finished.error());
  return set;
}

Result<LabelledSet> LabelledSet::images_in(const std::string& folder) {
  auto training = images_and_labels(folder, "train");
  if (!training) return tl::unexpected(training.error());
  auto held_out = images_and_labels(folder, "t10k");
  if (!held_out) return tl::unexpected(held_out.error());
  if (held_out->shape != training->shape)
    return bad_set(
        folder, fmt::format("has images of {} x {} to train on, and of {} x {} that are held out",
                            training->shape[0], training->shape[1], held_out->shape[0], held_out->shape[1]));
  LabelledSet set;
  set.training_ = std::move(training->part);
  set.held_out_ = std::move(held_out->part);
  set.shape_ = training->shape;
  return set;
}

Result<LabelledSet> LabelledSet::table_of(const std::string& file) {
  const auto rows = read_labelled_csv(file);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->labels.size() < kEveryFifth)
    return bad_set(file, fmt::format("has {} rows; at least {} are needed, as every fifth is held out",
                                     rows->labels.size(), kEveryFifth));
  LabelledSet set;
  set.shape_ = {rows->columns};
  std::vector<float> training, held_out;
  const auto columns = static_cast<std::size_t>(rows->columns);
  for (std::size_t row = 0; row < rows->labels.size(); ++row) {
    const bool out = row % kEveryFifth == kEveryFifth - 1;
    const auto values = std::span(rows->values).subspan(row * columns, columns);
    (out ? held_out : training).insert((out ? held_out : training).end(), values.begin(), values.end());
    (out ? set.held_out_ : set.training_).labels.push_back(rows->labels[row]);
  }
  set.training_.samples = std::move(training);
  set.held_out_.samples = std::move(held_out);
  return set;
}

/// What follows from the samples. Error (usage): labels that can't be learned.
Result<void> LabelledSet::finish(const std::string& path) {
  classes_ = std::ranges::max(training_.labels) + 1;
  if (classes_ < 2 || std::ranges::min(training_.labels) == std::ranges::max(training_.labels))
    return bad_set(path, fmt::format("has the one label {} in all that is trained on; two classes are the "
                                     "least that can be told apart",
                                     training_.labels.front()));
  if (const std::size_t at = first_beyond(held_out_.labels, classes_); at < held_out_.labels.size())
    return bad_set(path, fmt::format("holds out the label {} (sample {}); those to train on are 0 to {}",
                                     held_out_.labels[at], at, classes_ - 1));
  const std::size_t groups = has_images() ? 1 : static_cast<std::size_t>(numbers());
  for (std::size_t i = 0; i < groups; ++i) {
    const auto [mean, deviation] =
        std::visit([&](const auto& values) { return moments(values, i, groups); }, training_.samples);
    mean_.push_back(mean);
    deviation_.push_back(deviation);
  }
  std::error_code ignored;
  identity_ = {std::filesystem::absolute(path, ignored).string(),
               bytes_of_part(training_) + bytes_of_part(held_out_),
               hash_of_part(held_out_, hash_of_part(training_, static_cast<std::uint64_t>(numbers())))};
  return {};
}

}  // namespace footplate
