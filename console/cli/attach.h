#pragma once

#include "console/client/prompt/attachment.h"

namespace footplate {

/// The interactive client on a live run, and after it what there is to say: a word about detaching, or how
/// the run ended. Returns 0 after a detach, the run's exit code where it is over.
Result<int> attach_to(const RunRecord& run, Attachment::Options options);

}  // namespace footplate
