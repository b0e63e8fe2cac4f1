#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "protocol/json.h"

namespace footplate::host {

/// Where the ranks' threads are: what rank 0 has been asked for and hasn't answered. Several who ask for the
/// same are answered together. One thread.
class StackQuestions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kAllRanks = -1;
  static constexpr std::chrono::seconds kAnswered{3};  ///< more than rank 0 waits for the others

  /// Null until rank 0 has answered.
  using Report = std::shared_ptr<const Json>;

  /// The report to wait for. `send`: called where rank 0 has to be asked.
  template <typename Send>
  Report ask(int rank, Clock::time_point now, const Send& send) {
    Question& question = open_[rank];
    if (!question.report || now - question.asked > kAnswered) {
      question = {std::make_shared<Json>(), now};
      send();
    }
    return question.report;
  }

  /// Rank 0's report, of the rank that it names or of all.
  void answer(const Json& report) {
    const Json rank = report.value("rank", Json());
    const auto question = open_.find(rank.is_null() ? kAllRanks : rank.get<int>());
    if (question == open_.end()) return;
    *question->second.report = report;
    open_.erase(question);
  }

 private:
  struct Question {
    std::shared_ptr<Json> report;
    Clock::time_point asked;
  };
  std::map<int, Question> open_;  ///< by the rank asked for
};

}  // namespace footplate::host
