#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "protocol/messages/link_messages.h"

namespace footplate::host {

/// What rank 0 has been asked to ask the ranks, and hasn't answered. Several who ask for the same are
/// answered together. One thread.
class RankQuestions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAnswered{3};  ///< more than rank 0 waits for the others

  /// Null until rank 0 has answered.
  using Report = std::shared_ptr<const Json>;

  /// The report to wait for. `send`: called where rank 0 has to be asked.
  template <typename Send>
  Report ask(const AskRanks& asked, Clock::time_point now, const Send& send) {
    Question& question = open_[{asked.query, asked.rank}];
    if (!question.report || now - question.asked > kAnswered) {
      question = {std::make_shared<Json>(), now};
      send();
    }
    return question.report;
  }

  /// Rank 0's answer.
  void answer(const RanksAnswer& answer) {
    const auto question = open_.find({answer.query, answer.rank});
    if (question == open_.end()) return;
    *question->second.report = answer.report;
    open_.erase(question);
  }

 private:
  struct Question {
    std::shared_ptr<Json> report;
    Clock::time_point asked;
  };
  std::map<std::pair<std::string, std::optional<int>>, Question> open_;  ///< by query and rank
};

}  // namespace footplate::host
