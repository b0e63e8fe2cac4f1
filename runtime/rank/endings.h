#pragma once

#include "protocol/messages/event.h"
#include "protocol/result.h"
#include "runtime/train/trainer.h"

// What result.json says of a start, by how it ended (docs/files.md). Pure, but for the hash of the state.

namespace footplate {

/// Of a start that has trained: `ending` is what Trainer::run() gave. `start` counts from 1, `recoveries` are
/// losses that the run went on from, `last_evaluation` is the metrics of the newest one. Training thread.
RunResult result_of(const Trainer& trainer, const Result<Ending>& ending, int start, int recoveries,
                    const LoggedMetrics& last_evaluation);

/// Of a start that `error` ended before its first step, the same on all ranks.
RunResult refusal_of(const Error& error, int start);

}  // namespace footplate
