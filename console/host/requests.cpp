#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "console/host/console.h"

// What clients and scripts ask (docs/protocol.md): one function for each operation.

namespace footplate::host {
namespace {

constexpr double kOrderTimeout_s = 30;  ///< where a request doesn't say
constexpr double kForEver_s = 1e9;
constexpr std::size_t kNameShown = 64;                      ///< of a name that nothing has
constexpr std::chrono::milliseconds kFresh{100};            ///< a younger status is told as it is
constexpr std::chrono::milliseconds kRankAnswers{100};      ///< else rank 0 is silent, and so it is said
constexpr std::chrono::milliseconds kBusyRankAnswers{300};  ///< where only other processes may hold it up

constexpr std::chrono::seconds kDropTakes{30};
constexpr std::chrono::seconds kRanksAnswer{3};  ///< more than rank 0 waits for the others

std::optional<double> timeout_of(const Json& message) {
  const auto found = message.find("timeout_s");
  return found == message.end() || found->is_null() ? std::nullopt : std::optional(found->get<double>());
}

/// Whether a signal or a debugger holds the process. Else it may only be waiting for a core: on a busy
/// machine a healthy rank takes its time to answer, and must not be called silent for that.
bool is_held(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(") ");
  return name_end != std::string::npos && line.find_first_of("TtZ", name_end + 2) == name_end + 2;
}

Result<void> check_topic(const std::string& topic) {
  static const std::vector<std::string> kTopics{"*",    "metrics", "order",  "call", "eval", "ckpt", "run",
                                                "rank", "warn",    "client", "job",  "rule", "nccl", "note"};
  if (std::ranges::find(kTopics, topic) != kTopics.end()) return {};
  std::string all;
  for (const auto& one : kTopics) all += (all.empty() ? "" : " ") + one;
  const std::string near = nearest(topic, kTopics);
  return fail(ErrorKind::usage, "there is no topic '" + topic.substr(0, kNameShown) + "'" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                    "; topics: " + all);
}

/// A field that nothing reads was meant as one that counts: "at_stp" would order at once. `fields`: the
/// operation's own, with spaces between them.
Result<void> check_fields(const Json& message, const std::string& fields) {
  std::istringstream words("id op " + fields);
  const std::vector<std::string> known{std::istream_iterator<std::string>(words), {}};
  for (const auto& [name, value] : message.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string near = nearest(name, known);
    return fail(ErrorKind::usage, "'" + message.value("op", "") + "' has no field '" +
                                      name.substr(0, kNameShown) + "'" +
                                      (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                      "; fields: id op" + (fields.empty() ? "" : " ") + fields);
  }
  return {};
}

/// Leaves out the oldest, at the end, until a line can have the rest.
void fit(Json& list) {
  while (to_line(list).size() > kMaxFrameBytes / 2)
    list.erase(list.end() - 1 - static_cast<std::ptrdiff_t>(list.size() / 4), list.end());
}

}  // namespace

const Console::Operation Console::kClientOperations[] = {
    {"ping", &Console::op_ping, ""},
    {"status", &Console::op_status, ""},
    {"comm_report", &Console::op_comm_report, ""},
    {"stacks", &Console::op_stacks, "rank"},
    {"drop", &Console::op_drop, "rank"},
    {"schema", &Console::op_schema, ""},
    {"get", &Console::op_get, "names"},
    {"pending", &Console::op_pending, ""},
    {"set", &Console::op_set, "changes at_step timeout_s"},
    {"call", &Console::op_call, "action arguments at_step wait timeout_s"},
    {"cancel", &Console::op_cancel, "order call evaluation"},
    {"orders", &Console::op_orders, ""},
    {"eval", &Console::op_eval, "code name timeout_s asks"},
    {"answer", &Console::op_answer, "question yes"},
    {"interrupt", &Console::op_interrupt, ""},
    {"complete", &Console::op_complete, "code cursor"},
    {"help", &Console::op_help, "name"},
    {"role", &Console::op_role, "role"},
    {"attach", &Console::op_attach, "from"},
    {"subscribe", &Console::op_subscribe, "topics since"},
    {"rules", &Console::op_rules, ""},
    {"rule_off", &Console::op_rule_off, "rule"},
    {"jobs", &Console::op_jobs, ""},
    {"job_off", &Console::op_job_off, "job"},
    {"store", &Console::op_store, ""},
    {"bye", &Console::op_bye, ""},
    {nullptr, nullptr, nullptr}};

const Console::Operation Console::kLuaOperations[] = {{"order", &Console::op_order},
                                                      {"wait_order", &Console::op_wait_order},
                                                      {"wait_answer", &Console::op_wait_answer},
                                                      {"wait_call", &Console::op_wait_call},
                                                      {"wait_step", &Console::op_wait_step},
                                                      {"status", &Console::op_status},
                                                      {"comm_report", &Console::op_comm_report},
                                                      {"stacks", &Console::op_stacks},
                                                      {"wait_drop", &Console::op_drop},
                                                      {"settings", &Console::op_get},
                                                      {"pending", &Console::op_pending},
                                                      {"metrics", &Console::op_metrics},
                                                      {"orders", &Console::op_orders},
                                                      {"withdraw", &Console::op_withdraw},
                                                      {"cancel", &Console::op_cancel},
                                                      {"journal", &Console::op_journal},
                                                      {"wait_event", &Console::op_wait_event},
                                                      {"wait_lines", &Console::op_wait_lines},
                                                      {"wait_rules", &Console::op_wait_rules},
                                                      {"wait_seconds", &Console::op_wait_seconds},
                                                      {"rule", &Console::op_rule},
                                                      {"rules", &Console::op_rules},
                                                      {"rule_off", &Console::op_rule_off},
                                                      {"jobs", &Console::op_jobs},
                                                      {"job_off", &Console::op_job_off},
                                                      {"store", &Console::op_store},
                                                      {nullptr, nullptr}};

void Console::client_line(Client& client, const std::string& line) {
  auto message = parse_line(line);
  const bool object = message && message->is_object();
  const Json id = object ? message->value("id", Json()) : Json();
  const auto answer = [this, &client, id](Result<Json> value) {
    --client.open_requests;
    if (value)
      send(client, {{"type", "result"}, {"id", id}, {"value", *std::move(value)}});
    else
      send(client, {{"type", "error"}, {"id", id}, {"error", to_json(value.error())}});
  };
  ++client.open_requests;
  if (!message) return answer(tl::unexpected(message.error()));
  if (!object)
    return answer(fail(ErrorKind::usage, R"(a request is an object, as in {"id":1,"op":"status"})"));
  if (client.open_requests > static_cast<int>(options_.limits.requests))
    return answer(fail(ErrorKind::refused, std::to_string(client.open_requests - 1) +
                                               " requests are open already; read their answers first"));
  dispatch(kClientOperations, {client, *message, answer});
}

void Console::dispatch(const Operation* table, Request request) {
  const Answer answer = request.answer;
  try {
    const std::string name = request.message.value("op", "");
    std::vector<std::string> known;
    for (const Operation* operation = table; operation->name != nullptr; ++operation) {
      known.emplace_back(operation->name);
      if (name != operation->name) continue;
      if (operation->fields != nullptr)
        if (auto good = check_fields(request.message, operation->fields); !good)
          return answer(tl::unexpected(good.error()));
      return (this->*operation->run)(request);
    }
    std::string all;
    for (const auto& one : known) all += " " + one;
    answer(fail(ErrorKind::usage, "unknown operation '" + name + "'; there are" + all));
  } catch (const Json::exception&) {
    answer(fail(ErrorKind::usage, "a field of this request has the wrong type; docs/protocol.md has them"));
  }
}

void Console::op_ping(Request& request) {
  request.answer(Json::object());
}

/// From memory where rank 0 tells all the time or has just told; else it is asked, and has a moment to
/// answer.
void Console::op_status(Request& request) {
  if (following_ || view_.result() || now_ - view_.status_time() < kFresh)
    return request.answer(status_now());
  to_rank({{"type", "ask"}});
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.ready = [this, asked = view_.status_time()]() -> std::optional<Result<Json>> {
    if (view_.status_time() == asked) return std::nullopt;
    return Result<Json>(status_now());
  };
  wait.deadline = now_ + (is_held(::getppid()) ? kRankAnswers : kBusyRankAnswers);
  wait.late = [this]() -> Result<Json> { return status_now(); };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

/// Every rank is asked, by way of rank 0: nothing of it is in the status.
void Console::op_comm_report(Request& request) {
  to_rank({{"type", "comm_report"}});
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.ready = [this, before = view_.comm_report_time()]() -> std::optional<Result<Json>> {
    if (view_.comm_report_time() == before) return std::nullopt;
    return Result<Json>(view_.comm_report());
  };
  wait.deadline = now_ + kRanksAnswer;
  wait.late = []() -> Result<Json> {
    return fail(ErrorKind::timed_out, "rank 0 doesn't answer; status() says what is known of it");
  };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

/// Several who ask for the same are answered together.
void Console::op_stacks(Request& request) {
  const int rank = request.message.value("rank", kAllRanks);
  if (request.message.contains("rank") && !knows_rank(request, rank)) return;
  std::shared_ptr<Stacks>& asked = stacks_[rank];
  if (!asked || now_ - asked->asked > kRanksAnswer) {
    asked = std::make_shared<Stacks>(Stacks{Json(), now_});
    to_rank(rank == kAllRanks ? Json{{"type", "stacks"}} : Json{{"type", "stacks"}, {"rank", rank}});
  }
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.ready = [asked]() -> std::optional<Result<Json>> {
    if (asked->report.is_null()) return std::nullopt;
    return Result<Json>(asked->report);
  };
  wait.deadline = now_ + kRanksAnswer;
  wait.late = []() -> Result<Json> {
    return fail(ErrorKind::timed_out,
                "rank 0 doesn't answer, and all stacks come by way of it; status() says what is known of it");
  };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

/// Answers with an error where there is no such rank now.
bool Console::knows_rank(Request& request, int rank) {
  const int ranks = view_.status_at(now_).value("world_size", view_.run().value("world_size", 1));
  if (rank >= 0 && rank < ranks) return true;
  request.answer(
      fail(ErrorKind::usage, "there is no rank " + std::to_string(rank) + "; there " +
                                 (ranks == 1 ? "is only rank 0" : "are 0 to " + std::to_string(ranks - 1))));
  return false;
}

/// Not an order: the rank that is meant couldn't agree to one. Answered once the world has become smaller.
void Console::op_drop(Request& request) {
  const int rank = request.message.value("rank", kAllRanks);
  if (request.client.role < Role::admin)
    return request.answer(fail(ErrorKind::refused, "dropping a rank needs the role admin"));
  if (!knows_rank(request, rank)) return;
  if (rank == 0)
    return request.answer(
        fail(ErrorKind::refused,
             "rank 0 leads the run and isn't dropped from here; footplate stop --now ends all of it"));
  to_rank({{"type", "drop"}, {"rank", rank}, {"user", request.client.user}});
  const int before = view_.status_at(now_).value("world_size", 1);
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.ready = [this, rank, before]() -> std::optional<Result<Json>> {
    const int now = view_.status_at(now_).value("world_size", before);
    if (now >= before) return std::nullopt;
    return Result<Json>(Json{{"rank", rank}, {"world_size", now}});
  };
  wait.deadline = now_ + kDropTakes;
  wait.late = [rank]() -> Result<Json> {
    return fail(ErrorKind::timed_out,
                "rank " + std::to_string(rank) +
                    " was told to die, and the others haven't gone on yet; status() says more");
  };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

Json Console::status_now() const {
  Json status = view_.status_at(now_);
  status["orders"] = Json::array();
  for (const Json& report : book_.list()) {
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

/// Whether anybody looks at what happens, rather than at what is when they ask.
bool Console::has_followers() const {
  const auto follows = [](const auto& client) { return client->reader.has_value(); };
  return std::any_of(clients_.begin(), clients_.end(), follows) || waits_.for_steps() > 0 ||
         automation_.follows();
}

void Console::follow_if_needed() {
  if (!view_.known() || following_ == has_followers()) return;
  following_ = !following_;
  to_rank({{"type", "follow"}, {"on", following_}});
}

void Console::op_schema(Request& request) {
  request.answer(view_.schema_json());
}

void Console::op_get(Request& request) {
  const Json all = view_.settings().to_json();
  const auto names = request.message.value("names", std::vector<std::string>{});
  if (names.empty()) return request.answer(all);
  Json found = Json::object();
  for (const std::string& name : names) {
    if (!all.contains(name))
      return request.answer(fail(ErrorKind::usage, view_.schema().unknown_setting(name)));
    found[name] = all[name];
  }
  request.answer(std::move(found));
}

void Console::op_pending(Request& request) {
  request.answer(view_.pending());
}

void Console::op_set(Request& request) {
  Json json = {{"changes", request.message.value("changes", Json::object())},
               {"source", to_line(request.message)}};
  if (json["changes"].is_object()) {
    Json list = Json::array();
    for (const auto& [name, value] : json["changes"].items())
      list.push_back({{"name", name}, {"value", value}});
    json["changes"] = std::move(list);
  }
  if (request.message.contains("at_step")) json["at_step"] = request.message["at_step"];
  const double timeout_s = timeout_of(request.message).value_or(kOrderTimeout_s);
  auto order = order_from_json(json);
  if (!order) return request.answer(tl::unexpected(order.error()));
  for (Change& change : order->changes) {  // "30m" becomes 1800, 10.0 becomes 10
    auto value = view_.schema().check_live(change.name, to_json(change.value));
    if (!value) return request.answer(tl::unexpected(value.error()));
    change.value = *std::move(value);
  }
  const Until until = order->at_step ? Until::committed : Until::final;
  const auto ref = submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  answer_with_outcome(request, *ref, until, timeout_s, request.answer);
}

void Console::op_call(Request& request) {
  const Json call = {{"action", request.message.value("action", "")},
                     {"arguments", request.message.value("arguments", Json::object())}};
  Json json = {{"calls", Json::array({call})}, {"source", to_line(request.message)}};
  if (request.message.contains("at_step")) json["at_step"] = request.message["at_step"];
  auto order = order_from_json(json);
  if (!order) return request.answer(tl::unexpected(order.error()));
  const auto timeout_s = timeout_of(request.message);
  const bool waits = request.message.value("wait", false);
  const bool far = order->at_step.has_value() && waits;
  const Until until = order->at_step && !waits ? Until::committed : Until::final;
  const auto ref = submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  Client& client = request.client;
  const auto applied = [this, &client, timeout_s, waits, answer = request.answer](Result<Json> report) {
    if (!waits || !report || report->value("state", "") != "applied") return answer(std::move(report));
    wait_call(client, report->value("id", std::uint64_t{0}), 0, timeout_s, answer);
  };
  answer_with_outcome(
      request, *ref, until,
      waits && !far ? kOrderTimeout_s : timeout_s.value_or(far ? kForEver_s : kOrderTimeout_s), applied);
}

void Console::op_cancel(Request& request) {
  const bool evaluation = request.message.value("evaluation", false);
  const auto id = request.message.value("order", std::uint64_t{0});
  const OrderBook::Entry* entry = book_.find(id, "");
  if (entry == nullptr && !evaluation)
    return request.answer(fail(ErrorKind::usage, "there is no order " + std::to_string(id)));
  if (request.client.role < Role::operate)
    return request.answer(
        fail(ErrorKind::refused, "cancelling needs the role operate; this session has view"));
  if (evaluation)
    to_rank({{"type", "cancel"}, {"evaluation", true}});
  else if (request.message.contains("call"))
    to_rank({{"type", "cancel"}, {"order", id}, {"call", request.message["call"].get<int>()}});
  else
    withdraw(*entry);
  request.answer(Json::object());
}

void Console::op_orders(Request& request) {
  Json list = book_.list();
  fit(list);
  request.answer(std::move(list));
}

void Console::op_eval(Request& request) {
  const std::string code = request.message.value("code", "");
  if (code.size() > static_cast<std::size_t>(options_.limits.chunk_bytes))
    return request.answer(fail(
        ErrorKind::usage, "a chunk may have " + options_.limits.to_json()["chunk_bytes"].dump() + " bytes"));
  request.client.evals.push_back({{"type", "eval"},
                                  {"id", request.message.value("id", Json())},
                                  {"code", code},
                                  {"name", request.message.value("name", "chunk")},
                                  {"timeout_s", request.message.value("timeout_s", 30.0)},
                                  {"asks", request.message.value("asks", false)}});
  next_eval(request.client);  // answered by the session's result or error
}

void Console::op_interrupt(Request& request) {
  if (request.client.lua) request.client.lua->interrupt(now_);
  request.answer(Json::object());
}

void Console::op_subscribe(Request& request) {
  EventRing::Reader reader;
  for (const auto& topic : request.message.value("topics", std::vector<std::string>{"*"})) {
    if (const auto known = check_topic(topic); !known) return request.answer(tl::unexpected(known.error()));
    reader.topics.insert(topic);
  }
  const auto newest = ring_.next_sequence();
  const auto since = std::min(request.message.value("since", newest), newest);
  reader.next = std::max(since, ring_.oldest_sequence());
  request.answer(Json{{"sequence", reader.next}, {"lost", reader.next - since}});
  request.client.reader = std::move(reader);
}

void Console::op_bye(Request& request) {
  request.answer(Json::object());
  request.client.leaving = true;
}

void Console::op_order(Request& request) {
  auto order = order_from_json(request.message.value("order", Json::object()));
  if (!order) return request.answer(tl::unexpected(order.error()));
  const auto ref = submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  request.answer(Json{{"ref", *ref}});
}

void Console::op_wait_order(Request& request) {
  const std::string until = request.message.value("until", "final");
  wait_order(request, request.message.value("order", std::uint64_t{0}), request.message.value("ref", ""),
             until == "now"         ? Until::now
             : until == "committed" ? Until::committed
                                    : Until::final,
             timeout_of(request.message));
}

void Console::op_wait_call(Request& request) {
  wait_call(request.client, request.message.value("order", std::uint64_t{0}),
            request.message.value("call", std::int64_t{0}), timeout_of(request.message), request.answer,
            /*of_script=*/true);
}

void Console::op_wait_step(Request& request) {
  constexpr double kLast = 9e15;  // beyond any run, and a whole number in either type
  const auto step = static_cast<std::int64_t>(std::clamp(request.message.value("step", 0.0), 0.0, kLast));
  const auto reached = [this] { return Json{{"step", view_.step()}}; };
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.of_script = wait.for_step = true;
  wait.ready = [this, step, reached]() -> std::optional<Result<Json>> {
    if (view_.step() >= step) return Result<Json>(reached());
    return failure_of_the_end();
  };
  wait.deadline = after(timeout_of(request.message));
  wait.late = [reached]() -> Result<Json> {
    Json late = reached();
    late["timed_out"] = true;
    return late;
  };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

void Console::op_withdraw(Request& request) {
  const OrderBook::Entry* entry =
      book_.find(request.message.value("order", std::uint64_t{0}), request.message.value("ref", ""));
  if (entry == nullptr) return request.answer(fail(ErrorKind::usage, "there is no such order"));
  if (request.client.role < Role::operate)
    return request.answer(
        fail(ErrorKind::refused, "withdrawing an order needs the role operate; this session has view"));
  withdraw(*entry);
  request.answer(Json::object());
}

void Console::op_metrics(Request& request) {
  request.answer(view_.metrics());
}

void Console::op_journal(Request& request) {
  constexpr std::size_t kTail = 64U * 1024;
  request.answer(journal_ ? Json(journal_->tail(kTail)) : Json(""));
}

}  // namespace footplate::host
