#pragma once

#include <string>
#include <vector>

#include "protocol/messages/run_status.h"
#include "protocol/schema.h"
#include "protocol/words.h"

namespace footplate {

/// Rows of cells as text, columns aligned, the last one ragged; each line ends with a newline.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// What `text` may do on a terminal, if stdout or stderr (`fd`) is one; otherwise the text as it is.
std::string for_output(const std::string& text, int fd);

/// A status for people: notes first, then the run, then its ranks. Where a rank is silent, the run is
/// STALLED, for how long, and has no pace.
std::string render_status(const RunStatus& status, const std::string& name);

/// A status's ranks as a table with a heading; empty for none.
std::string render_ranks(const std::vector<RankStatus>& ranks);

/// The same table of rows that say what is known of a rank: number, host, pid, step, phase, silence and
/// collective.
std::string rank_table(std::vector<std::vector<std::string>> rows);

}  // namespace footplate
