#pragma once

namespace footplate {

/// The source of train.steps where train.epochs says when the run ends.
inline constexpr const char* kOfEpochs = "train.epochs";

}  // namespace footplate
