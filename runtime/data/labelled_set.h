#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "protocol/result.h"
#include "runtime/data/corpus_identity.h"

namespace footplate {

/// Samples with a class each, all of them in memory: images of bytes, or rows of numbers. Any thread.
class LabelledSet {
 public:
  /// Bytes of images, row by row, or numbers of rows.
  using Samples = std::variant<std::vector<std::uint8_t>, std::vector<float>>;
  struct Part {
    Samples samples;
    std::vector<std::uint16_t> labels;
  };

  /// `path`: a folder with the four IDX files of MNIST's names, plain or gzipped (train-images-idx3-ubyte,
  /// train-labels-idx1-ubyte, and t10k-… which are held out), or a CSV file of numbers with the label last,
  /// plain or gzipped, of which every fifth row is held out. Errors (usage), each with the file, the place
  /// and what is wrong: what read_idx() and read_labelled_csv() say, images and labels that don't fit to each
  /// other, one class alone, too few rows, labels that are held out and not trained on.
  static Result<LabelledSet> open(const std::string& path);

  std::int64_t training() const { return static_cast<std::int64_t>(training_.labels.size()); }
  std::int64_t held_out() const { return static_cast<std::int64_t>(held_out_.labels.size()); }
  const Part& part(bool held_out) const { return held_out ? held_out_ : training_; }
  /// Of a sample: [rows, columns] of an image, or [numbers].
  const std::vector<std::int64_t>& shape() const { return shape_; }
  bool has_images() const { return shape_.size() == 2; }
  std::int64_t numbers() const;                      ///< of a sample
  std::int64_t classes() const { return classes_; }  ///< labels are below it
  /// Of what is trained on: one of all bytes of images, or of each column of a table. Never 0, the deviation.
  const std::vector<float>& mean() const { return mean_; }
  const std::vector<float>& deviation() const { return deviation_; }
  const CorpusIdentity& identity() const { return identity_; }

 private:
  static Result<LabelledSet> images_in(const std::string& folder);
  static Result<LabelledSet> table_of(const std::string& file);
  Result<void> finish(const std::string& path);

  Part training_, held_out_;
  std::vector<std::int64_t> shape_;
  std::int64_t classes_ = 0;
  std::vector<float> mean_, deviation_;
  CorpusIdentity identity_;
};

}  // namespace footplate
