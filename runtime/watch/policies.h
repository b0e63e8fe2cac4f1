#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "protocol/messages/enum_words.h"
#include "protocol/settings.h"

namespace footplate {

// Settings that say what follows where something goes wrong, by the words of their choices.

/// comm.on_loss: a rank is lost.
enum class OnLoss { rebuild, stop };
template <>
struct EnumWords<OnLoss> {
  static constexpr std::array kAll{std::pair{OnLoss::rebuild, std::string_view("rebuild")},
                                   std::pair{OnLoss::stop, std::string_view("stop")}};
};

/// comm.on_timeout and eval.on_timeout: a collective hangs though its ranks live.
enum class OnTimeout { wait, rebuild, skip, stop };
template <>
struct EnumWords<OnTimeout> {
  static constexpr std::array kAll{std::pair{OnTimeout::wait, std::string_view("wait")},
                                   std::pair{OnTimeout::rebuild, std::string_view("rebuild")},
                                   std::pair{OnTimeout::skip, std::string_view("skip")},
                                   std::pair{OnTimeout::stop, std::string_view("stop")}};
};

/// guard.on_mismatch: the ranks' states differ.
enum class OnMismatch { warn, repair, stop };
template <>
struct EnumWords<OnMismatch> {
  static constexpr std::array kAll{std::pair{OnMismatch::warn, std::string_view("warn")},
                                   std::pair{OnMismatch::repair, std::string_view("repair")},
                                   std::pair{OnMismatch::stop, std::string_view("stop")}};
};

/// comm.auto: what becomes of advice.
enum class AdviceMode { off, advise, apply };
template <>
struct EnumWords<AdviceMode> {
  static constexpr std::array kAll{std::pair{AdviceMode::off, std::string_view("off")},
                                   std::pair{AdviceMode::advise, std::string_view("advise")},
                                   std::pair{AdviceMode::apply, std::string_view("apply")}};
};

}  // namespace footplate
