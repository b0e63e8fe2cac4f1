#include "console/host/api/operations.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "console/host/api/request_fields.h"
#include "run_files/checkpoint_list.h"
#include "run_files/run_file.h"

namespace footplate::host::operations {
namespace {

constexpr std::chrono::milliseconds kFresh{100};            ///< a younger status is told as it is
constexpr std::chrono::milliseconds kRankAnswers{100};      ///< else rank 0 is silent, and so it is said
constexpr std::chrono::milliseconds kBusyRankAnswers{300};  ///< where only other processes may hold it up
constexpr std::chrono::seconds kDropTakes{30};

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
  Json status = to_json(api.host.view.status_at(api.host.now));
  Json& orders = status["orders"] = Json::array();
  for (const OrderReport* report : api.host.book.list()) {
    if (is_final(report->state)) break;
    OrderReport shown = *report;
    // A chunk that ordered much is the source of each: orders() has that.
    if (shown.order) shown.order->source.clear();
    orders.push_back(to_json(shown));
    if (shown.order) orders.back()["order"].erase("source");
  }
  fit(orders);
  return status;
}

/// Answers with an error where there is no such rank now.
bool knows_rank(Api& api, Request& request, int rank) {
  const int ranks = api.host.view.world_size();
  if (rank >= 0 && rank < ranks) return true;
  request.answer(
      fail(ErrorKind::usage, "there is no rank " + std::to_string(rank) + "; there " +
                                 (ranks == 1 ? "is only rank 0" : "are 0 to " + std::to_string(ranks - 1))));
  return false;
}

/// Every rank is asked, by way of rank 0, and its answer put together with the others'. `silent`: what is
/// said where rank 0 doesn't answer.
void ask_ranks(Api& api, Request& request, AskRanks question, const char* silent) {
  const auto report =
      api.questions.ask(question, api.host.now, [&api, &question] { api.host.to_rank(question); });
  const auto ready = [report]() -> std::optional<Result<Json>> {
    return report->is_null() ? std::nullopt : std::optional<Result<Json>>(*report);
  };
  const auto late = [silent]() -> Result<Json> {
    return fail(ErrorKind::timed_out, std::string(silent) + "; status() says what is known of it");
  };
  Waits::Wait wait = Waits::wait_for<Json>(request.answer, ready, late);
  wait.deadline = api.host.now + RankQuestions::kAnswered;
  leave(api, request, std::move(wait));
}

}  // namespace

/// From memory where rank 0 tells all the time or has just told; else it is asked, and has a moment to
/// answer.
void status(Api& api, Request& request) {
  if (api.host.following || api.host.view.result() || api.host.now - api.host.view.status_time() < kFresh)
    return request.answer(status_now(api));
  api.host.to_rank(AskStatus{});
  const auto ready = [&api, asked = api.host.view.status_time()]() -> std::optional<Result<Json>> {
    if (api.host.view.status_time() == asked) return std::nullopt;
    return Result<Json>(status_now(api));
  };
  const auto late = [&api]() -> Result<Json> { return status_now(api); };
  Waits::Wait wait = Waits::wait_for<Json>(request.answer, ready, late);
  wait.deadline = api.host.now + (is_held(::getppid()) ? kRankAnswers : kBusyRankAnswers);
  leave(api, request, std::move(wait));
}

void comm_report(Api& api, Request& request) {
  ask_ranks(api, request, {"comm", std::nullopt}, "rank 0 doesn't answer");
}

void comm_dump(Api& api, Request& request) {
  ask_ranks(api, request, {"dump", std::nullopt},
            "rank 0 doesn't answer, and the others are asked by way of it");
}

void stacks(Api& api, Request& request, const StacksRequest& fields) {
  if (fields.rank && !knows_rank(api, request, *fields.rank)) return;
  ask_ranks(api, request, {"stacks", fields.rank}, "rank 0 doesn't answer, and all stacks come by way of it");
}

/// Not an order: the rank that is meant couldn't agree to one. Answered once the world has become smaller.
void drop(Api& api, Request& request, const DropRequest& fields) {
  const int rank = fields.rank;
  if (!knows_rank(api, request, rank)) return;
  if (rank == 0)
    return request.answer(
        fail(ErrorKind::refused,
             "rank 0 leads the run and isn't dropped from here; footplate stop --now ends all of it"));
  api.host.to_rank(DropRank{rank, request.client.user});
  const auto ready = [&api, rank, before = api.host.view.world_size()]() -> std::optional<Result<Json>> {
    const int now = api.host.view.world_size();
    if (now >= before) return std::nullopt;
    return Result<Json>(Json{{"rank", rank}, {"world_size", now}});
  };
  const auto late = [rank]() -> Result<Json> {
    return fail(ErrorKind::timed_out,
                "rank " + std::to_string(rank) +
                    " was told to die, and the others haven't gone on yet; status() says more");
  };
  Waits::Wait wait = Waits::wait_for<Json>(request.answer, ready, late);
  wait.deadline = api.host.now + kDropTakes;
  leave(api, request, std::move(wait));
}

void schema(Api& api, Request& request) {
  request.answer(api.host.view.schema_json());
}

void get(Api& api, Request& request, const GetRequest& fields) {
  const Json all = api.host.view.settings().to_json();
  if (fields.names.empty()) return request.answer(all);
  Json found = Json::object();
  for (const std::string& name : fields.names) {
    if (!all.contains(name))
      return request.answer(fail(ErrorKind::usage, api.host.view.schema().unknown_setting(name)));
    found[name] = all[name];
  }
  request.answer(std::move(found));
}

void pending(Api& api, Request& request) {
  request.answer(list_of(api.host.view.pending()));
}

void metrics(Api& api, Request& request) {
  request.answer(to_json(api.host.view.metrics()));
}

void checkpoints(Api& api, Request& request) {
  const std::filesystem::path run = api.host.options.run_directory;
  const auto record = read_run_file(run);
  Json list = Json::array();
  for (const auto& one : summaries_of(run, record ? record->best_evaluation : std::nullopt))
    list.push_back(to_json(one));
  request.answer(std::move(list));
}

void journal(Api& api, Request& request) {
  constexpr std::size_t kTail = 64U * 1024;
  request.answer(api.host.journal ? Json(api.host.journal->tail(kTail)) : Json(""));
}

void store(Api& api, Request& request) {
  request.answer(api.host.view.store());
}

}  // namespace footplate::host::operations
