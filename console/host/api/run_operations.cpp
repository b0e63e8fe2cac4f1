#include "console/host/api/operations.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "console/host/api/request_fields.h"

namespace footplate::host::operations {
namespace {

constexpr std::chrono::milliseconds kFresh{100};            ///< a younger status is told as it is
constexpr std::chrono::milliseconds kRankAnswers{100};      ///< else rank 0 is silent, and so it is said
constexpr std::chrono::milliseconds kBusyRankAnswers{300};  ///< where only other processes may hold it up
constexpr std::chrono::seconds kDropTakes{30};
constexpr std::chrono::seconds kRanksAnswer{3};  ///< more than rank 0 waits for the others

/// Whether a signal or a debugger holds the process. Else it may only be waiting for a core: on a busy
/// machine a healthy rank takes its time to answer, and must not be called silent for that.
bool is_held(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(") ");
  return name_end != std::string::npos && line.find_first_of("TtZ", name_end + 2) == name_end + 2;
}

Json status_now(Api& api) {
  Json status = api.host.view.status_at(api.host.now);
  status["orders"] = Json::array();
  for (const Json& report : api.host.book.list()) {
    const std::string state = report.value("state", "");
    if (state == "applied" || state == "refused" || state == "aborted" || state == "withdrawn") break;
    status["orders"].push_back(report);
    // A chunk that ordered much is the source of each: orders() has that.
    if (const auto order = status["orders"].back().find("order"); order != status["orders"].back().end())
      order->erase("source");
  }
  fit(status["orders"]);
  return status;
}

/// Answers with an error where there is no such rank now.
bool knows_rank(Api& api, Request& request, int rank) {
  const int ranks =
      api.host.view.status_at(api.host.now).value("world_size", api.host.view.run().value("world_size", 1));
  if (rank >= 0 && rank < ranks) return true;
  request.answer(
      fail(ErrorKind::usage, "there is no rank " + std::to_string(rank) + "; there " +
                                 (ranks == 1 ? "is only rank 0" : "are 0 to " + std::to_string(ranks - 1))));
  return false;
}

}  // namespace

/// From memory where rank 0 tells all the time or has just told; else it is asked, and has a moment to
/// answer.
void status(Api& api, Request& request) {
  if (api.host.following || api.host.view.result() || api.host.now - api.host.view.status_time() < kFresh)
    return request.answer(status_now(api));
  api.host.to_rank({{"type", "ask"}});
  Waits::Wait wait;
  wait.ready = [&api, asked = api.host.view.status_time()]() -> std::optional<Result<Json>> {
    if (api.host.view.status_time() == asked) return std::nullopt;
    return Result<Json>(status_now(api));
  };
  wait.deadline = api.host.now + (is_held(::getppid()) ? kRankAnswers : kBusyRankAnswers);
  wait.late = [&api]() -> Result<Json> { return status_now(api); };
  wait_for(api, request, std::move(wait));
}

/// Every rank is asked, by way of rank 0: nothing of it is in the status.
void comm_report(Api& api, Request& request) {
  api.host.to_rank({{"type", "comm_report"}});
  Waits::Wait wait;
  wait.ready = [&api, before = api.host.view.comm_report_time()]() -> std::optional<Result<Json>> {
    if (api.host.view.comm_report_time() == before) return std::nullopt;
    return Result<Json>(api.host.view.comm_report());
  };
  wait.deadline = api.host.now + kRanksAnswer;
  wait.late = []() -> Result<Json> {
    return fail(ErrorKind::timed_out, "rank 0 doesn't answer; status() says what is known of it");
  };
  wait_for(api, request, std::move(wait));
}

void stacks(Api& api, Request& request) {
  const int rank = request.message.value("rank", StackQuestions::kAllRanks);
  if (request.message.contains("rank") && !knows_rank(api, request, rank)) return;
  Waits::Wait wait;
  wait.ready = [report = api.stacks.ask(rank, api.host.now, [&api, rank] {
    Json question = {{"type", "stacks"}};
    if (rank != StackQuestions::kAllRanks) question["rank"] = rank;
    api.host.to_rank(question);
  })]() -> std::optional<Result<Json>> {
    if (report->is_null()) return std::nullopt;
    return Result<Json>(*report);
  };
  wait.deadline = api.host.now + StackQuestions::kAnswered;
  wait.late = []() -> Result<Json> {
    return fail(ErrorKind::timed_out,
                "rank 0 doesn't answer, and all stacks come by way of it; status() says what is known of it");
  };
  wait_for(api, request, std::move(wait));
}

/// Not an order: the rank that is meant couldn't agree to one. Answered once the world has become smaller.
void drop(Api& api, Request& request) {
  const int rank = request.message.value("rank", StackQuestions::kAllRanks);
  if (!knows_rank(api, request, rank)) return;
  if (rank == 0)
    return request.answer(
        fail(ErrorKind::refused,
             "rank 0 leads the run and isn't dropped from here; footplate stop --now ends all of it"));
  api.host.to_rank({{"type", "drop"}, {"rank", rank}, {"user", request.client.user}});
  const int before = api.host.view.status_at(api.host.now).value("world_size", 1);
  Waits::Wait wait;
  wait.ready = [&api, rank, before]() -> std::optional<Result<Json>> {
    const int now = api.host.view.status_at(api.host.now).value("world_size", before);
    if (now >= before) return std::nullopt;
    return Result<Json>(Json{{"rank", rank}, {"world_size", now}});
  };
  wait.deadline = api.host.now + kDropTakes;
  wait.late = [rank]() -> Result<Json> {
    return fail(ErrorKind::timed_out,
                "rank " + std::to_string(rank) +
                    " was told to die, and the others haven't gone on yet; status() says more");
  };
  wait_for(api, request, std::move(wait));
}

void schema(Api& api, Request& request) {
  request.answer(api.host.view.schema_json());
}

void get(Api& api, Request& request) {
  const Json all = api.host.view.settings().to_json();
  const auto names = request.message.value("names", std::vector<std::string>{});
  if (names.empty()) return request.answer(all);
  Json found = Json::object();
  for (const std::string& name : names) {
    if (!all.contains(name))
      return request.answer(fail(ErrorKind::usage, api.host.view.schema().unknown_setting(name)));
    found[name] = all[name];
  }
  request.answer(std::move(found));
}

void pending(Api& api, Request& request) {
  request.answer(api.host.view.pending());
}

void metrics(Api& api, Request& request) {
  request.answer(api.host.view.metrics());
}

void journal(Api& api, Request& request) {
  constexpr std::size_t kTail = 64U * 1024;
  request.answer(api.host.journal ? Json(api.host.journal->tail(kTail)) : Json(""));
}

void store(Api& api, Request& request) {
  request.answer(api.host.view.store());
}

}  // namespace footplate::host::operations
