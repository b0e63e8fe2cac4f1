#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "runtime/data/recordings.h"
#include "runtime/data/windows.h"
#include "runtime/models/rvq_codec.h"
#include "runtime/models/rvq_quantiser.h"

namespace footplate {

/// A codec of speech: encoder, residual vector quantiser, decoder (docs/rvq.md). A sample is a window of a
/// recording; there is a data set for each length of windows. Audio counts in units of its usual size: an
/// error of 1 is what silence would make.
class RvqTask final : public v1::Task {
 public:
  static v1::Declaration declare();
  /// Throws TaskError: what Recordings::open() says; recordings that are too short.
  explicit RvqTask(const v1::Host& host);

  std::vector<v1::Parameter> parameters() override { return codec_.parameters(); }
  std::vector<v1::State> state() override;
  std::vector<v1::Statistic> statistics() override;
  std::vector<v1::DataSet> data() override;
  v1::Batch load(const v1::Samples& samples) override;
  std::vector<at::Tensor> by_draw(const v1::Samples& samples) override;
  /// The error of reconstruction and task.commitment times that of the codes.
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  /// The error of reconstruction alone.
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override;
  void update(const std::vector<at::Tensor>& statistics, const at::Tensor& skip) override;
  void changed(const v1::Values& now, std::int64_t step) override;
  std::string call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) override;
  double flops_per_weight() const override;

 private:
  struct Set {
    const char* name;
    Windows training, held_out;
  };
  struct Passed {
    at::Tensor vectors, error;  ///< `error`: squared, summed
    RvqQuantiser::Quantised quantised;
  };

  std::vector<Set> make_sets() const;
  Passed pass(const at::Tensor& audio) const;
  void add_metrics(const Passed& passed, double weight, v1::Sums& sums) const;
  at::Tensor audio_of(const v1::Batch& batch) const;
  float scale() const { return static_cast<float>(1 / usual_size_); }
  at::Tensor scaled(const std::vector<std::span<const std::int16_t>>& rows) const;
  std::string report_codebooks();
  std::size_t held_out_recording(std::int64_t number) const;
  std::string write_audio(const v1::Arguments& arguments, std::int64_t step);

  const v1::Host& host_;
  const std::int64_t rate_;
  const std::uint64_t seed_;
  const Recordings recordings_;
  const std::vector<Set> sets_;
  const double usual_size_;  ///< root mean square of what is trained on, in steps of 16 bits
  const at::Tensor size_;    ///< [1]: the same as a state, for whoever decodes with a checkpoint
  RvqCodec codec_;
  RvqQuantiser quantiser_;
  double commitment_ = 0;
  CodebookPace pace_;
};

}  // namespace footplate
