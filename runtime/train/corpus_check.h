#pragma once

#include <string>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/corpus_identity.h"

namespace footplate {

/// Whether all ranks read the same text under the name data.corpus. Collective. Error (usage), the same on
/// all: which ranks don't, sizes and paths; the collective's.
Result<void> same_corpus(Communicator& communicator, const CorpusIdentity& mine);

/// For a checkpoint's `progress`; null: there is none.
Json to_json(const CorpusIdentity& corpus);

/// What people should know where a run goes on from a checkpoint with this `progress`; empty: it had the same
/// corpus, or doesn't know.
std::string other_corpus(const Json& progress, const CorpusIdentity& now);

}  // namespace footplate
