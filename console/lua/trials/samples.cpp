#include "console/lua/trials/samples.h"

#include <cmath>

namespace footplate::lua {

Estimate Samples::mean() const {
  const auto count = static_cast<double>(samples_.size());
  double sum = 0, squares = 0;
  for (const Sample& sample : samples_) sum += sample.value;
  const double mean = sum / count;
  for (const Sample& sample : samples_) squares += (sample.value - mean) * (sample.value - mean);
  return {mean, samples_.size() < 2 ? 0 : std::sqrt(squares / (count - 1) / count)};
}

double Samples::mean_place() const {
  double sum = 0;
  for (const Sample& sample : samples_) sum += sample.place;
  return sum / static_cast<double>(samples_.size());
}

Estimate Samples::line_at(double place) const {
  const Estimate mean = this->mean();
  if (samples_.size() < kFewest) return mean;
  const auto count = static_cast<double>(samples_.size());
  const double middle = mean_place();
  double spread = 0, together = 0, residuals = 0;
  for (const Sample& sample : samples_) {
    spread += (sample.place - middle) * (sample.place - middle);
    together += (sample.place - middle) * (sample.value - mean.value);
  }
  const double slope = spread > 0 ? together / spread : 0;
  for (const Sample& sample : samples_) {
    const double off = sample.value - (mean.value + slope * (sample.place - middle));
    residuals += off * off;
  }
  const double ahead = place - middle;
  const double leverage = 1 / count + (spread > 0 ? ahead * ahead / spread : 0);
  return {mean.value + slope * ahead, std::sqrt(residuals / (count - 2) * leverage)};
}

}  // namespace footplate::lua
