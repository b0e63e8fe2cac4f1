#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "protocol/settings.h"

namespace footplate {

/// How parameters follow from gradients: optim.kind.
enum class OptimizerKind { adamw, sgd, lion, muon };
template <>
struct EnumWords<OptimizerKind> {
  static constexpr std::array kAll{std::pair{OptimizerKind::adamw, std::string_view("adamw")},
                                   std::pair{OptimizerKind::sgd, std::string_view("sgd")},
                                   std::pair{OptimizerKind::lion, std::string_view("lion")},
                                   std::pair{OptimizerKind::muon, std::string_view("muon")}};
};

/// What an optimizer reads at every step, but for the learning rate.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adamw;
  double weight_decay = 0;
  double beta1 = 0, beta2 = 0;  ///< of adamw and lion
  double eps = 0;               ///< of adamw
  double momentum = 0;          ///< of sgd and muon
  bool nesterov = false;        ///< of sgd and muon

  static OptimizerSettings from(const Settings& settings);
  bool operator==(const OptimizerSettings&) const = default;
};

}  // namespace footplate
