#include "runtime/train/corpus_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/comm/agree.h"

namespace footplate {

Result<void> same_corpus(Communicator& communicator, const CorpusIdentity& mine) {
  const auto others = ranks_with_another(communicator, mine.ranks_hash(), "corpora");
  if (!others) return tl::unexpected(others.error());
  if (others->empty()) return {};
  const auto first = from_rank(communicator, 0, mine.of_ranks());
  const auto other = first ? from_rank(communicator, others->front(), mine.of_ranks()) : first;
  if (!other) return tl::unexpected(other.error());
  return fail(
      ErrorKind::usage,
      fmt::format(
          "the data (data.corpus, or what the task reads) aren't the same on all ranks: rank 0 has {}, "
          "rank {} has {}; other than rank 0: {} {}; copy the same files to all hosts, or name some on a "
          "disk that they share",
          *first, others->front(), *other, others->size() == 1 ? "rank" : "ranks", fmt::join(*others, ", ")));
}

std::optional<KeptCorpus> kept(const CorpusIdentity& corpus) {
  if (corpus.bytes == 0 && corpus.hash == 0) return std::nullopt;
  return KeptCorpus{corpus.bytes, corpus.hash_text()};
}

std::string other_corpus(const std::optional<KeptCorpus>& kept, const CorpusIdentity& now) {
  if (!kept || (now.bytes == 0 && now.hash == 0) || kept->hash == now.hash_text()) return "";
  return fmt::format(
      "data.corpus isn't the one this checkpoint was trained on: that had {} bytes, hash {}; training goes "
      "on with {}; where that isn't meant, stop the run and resume it with the text of before",
      kept->bytes, kept->hash, now.text());
}

}  // namespace footplate
