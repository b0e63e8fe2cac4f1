#pragma once

#include <optional>
#include <string>

#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/corpus_identity.h"
#include "runtime/train/training_progress.h"

namespace footplate {

/// Whether all ranks read the same data: of a text its hash, of other tasks what they tell of them, and how
/// much there is. Collective. Error (usage), the same on all: which ranks don't, sizes and paths; the
/// collective's.
Result<void> same_corpus(Communicator& communicator, const CorpusIdentity& mine);

/// For a checkpoint; nothing: there is none.
std::optional<KeptCorpus> kept(const CorpusIdentity& corpus);

/// What people should know where a run goes on from a checkpoint that was trained on `kept`; empty: it had
/// the same corpus, or doesn't know.
std::string other_corpus(const std::optional<KeptCorpus>& kept, const CorpusIdentity& now);

}  // namespace footplate
