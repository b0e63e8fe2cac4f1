// Ranks with different texts under one name, and a resume on another text.
#include "runtime/train/corpus_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Rank;
using testing::run_ranks;
using ::testing::SizeIs;
using testing::small_settings;
using testing::train;

TEST(CorpusCheck, RanksWithTheSameTextSomewhereElseAgree) {
  run_ranks(3, [](int rank, Communicator& communicator, Progress&) {
    const auto same = same_corpus(communicator, {"/host-" + std::to_string(rank) + "/text", 100, 7});
    EXPECT_TRUE(same) << same.error().message;
  });
}

TEST(CorpusCheck, RanksWithOthersAreNamedOnAll) {
  run_ranks(4, [](int rank, Communicator& communicator, Progress&) {
    const bool other = rank >= 2;
    const std::string path = "/host-" + std::to_string(rank) + "/text";
    const auto same = same_corpus(communicator, {path, other ? 90u : 100u, other ? 8u : 7u});
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().kind, ErrorKind::usage);
    EXPECT_THAT(same.error().message,
                AllOf(HasSubstr("rank 0 has /host-0/text (100 bytes, hash 0000000000000007)"),
                      HasSubstr("rank 2 has /host-2/text (90 bytes, hash 0000000000000008)"),
                      HasSubstr("other than rank 0: ranks 2, 3")));
  });
}

/// Tasks needn't tell a hash. How much there is they do tell.
TEST(CorpusCheck, RanksWithMoreSamplesAreNamed) {
  run_ranks(2, [](int rank, Communicator& communicator, Progress&) {
    const auto same =
        same_corpus(communicator, {"", 0, 0, std::to_string(90 + rank) + " samples to train on"});
    ASSERT_FALSE(same);
    EXPECT_THAT(same.error().message, AllOf(HasSubstr("90 samples"), HasSubstr("91 samples")));
  });
}

TEST(CorpusCheck, AProcessThatJoinsHasTheCorpusOfTheRanks) {
  train(1, small_settings(), [](Rank& rank) {
    EXPECT_TRUE(rank.trainer.check_corpus(""));
    EXPECT_TRUE(rank.trainer.check_corpus(rank.trainer.corpus_hash()));
    const auto same = rank.trainer.check_corpus("0000000000000007");
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().kind, ErrorKind::usage);
    EXPECT_THAT(same.error().message,
                AllOf(HasSubstr("hash 0000000000000007"), HasSubstr(rank.trainer.corpus_hash())));
  });
  train(1, small_settings({"run.task=synthetic"}),
        [](Rank& rank) { EXPECT_TRUE(rank.trainer.check_corpus(rank.trainer.corpus_hash())); });
}

/// What rank 0 of two warns of where they go on with `corpus` from a checkpoint on the fixtures' own text;
/// `knows`: whether it says which text that was.
std::vector<Json> warnings_on_resume(const std::string& corpus, bool knows) {
  std::mutex mutex;
  std::map<int, std::map<std::string, testing::MemorySaver::Copy>> kept;
  train(
      2, small_settings(),
      [](Rank& rank) {
        rank.gate.call_at(3, {"ckpt.save", {{"tag", "x"}}});
      },
      [&](Rank& rank) {
        const std::lock_guard lock(mutex);
        kept[rank.communicator.rank()] = rank.saver.checkpoints;
      });
  if (!knows)
    for (auto& [rank, checkpoints] : kept) checkpoints.at("step-3x").progress.erase("corpus");
  std::vector<Json> warnings;
  const auto settings = corpus.empty() ? small_settings() : small_settings({"data.corpus=" + corpus});
  train(
      2, settings,
      [&](Rank& rank) {
        rank.saver.checkpoints = kept.at(rank.communicator.rank());
        const auto loaded = rank.trainer.load("step-3x");
        ASSERT_TRUE(loaded) << loaded.error().message;
      },
      [&](Rank& rank) {
        if (rank.communicator.rank() == 0) warnings = rank.gate.events["warn"];
        EXPECT_EQ(rank.trainer.step(), 10);
      });
  return warnings;
}

TEST(CorpusCheck, AResumeOnAnotherTextWarnsAndGoesOn) {
  EXPECT_THAT(warnings_on_resume("", true), IsEmpty());
  const auto path = std::filesystem::path(::testing::TempDir()) / "footplate-other-text.txt";
  std::ofstream(path) << std::string(20'000, 'x');
  EXPECT_THAT(warnings_on_resume(path, false), IsEmpty());
  const auto warnings = warnings_on_resume(path, true);
  std::filesystem::remove(path);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].at("kind"), "corpus");
  EXPECT_THAT(warnings[0].at("text").get<std::string>(),
              AllOf(HasSubstr("data.corpus isn't the one this checkpoint was trained on"),
                    HasSubstr(path.string() + " (20000 bytes")));
}

}  // namespace
}  // namespace footplate
