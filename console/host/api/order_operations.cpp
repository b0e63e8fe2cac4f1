#include "console/host/api/operations.h"

#include <string>

#include "console/host/api/request_fields.h"

namespace footplate::host::operations {
namespace {

constexpr double kOrderTimeout_s = 30;  ///< where a request doesn't say
constexpr double kForEver_s = 1e9;

}  // namespace

void set(Api& api, Request& request) {
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
    auto value = api.host.view.schema().check_live(change.name, to_json(change.value));
    if (!value) return request.answer(tl::unexpected(value.error()));
    change.value = *std::move(value);
  }
  const OrderDesk::Until until = order->at_step ? OrderDesk::Until::committed : OrderDesk::Until::final;
  const auto ref = api.orders.submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  api.orders.answer_with_outcome(request.client.id, *ref, until, timeout_s, request.answer);
}

void call(Api& api, Request& request) {
  const Json call = {{"action", request.message.value("action", "")},
                     {"arguments", request.message.value("arguments", Json::object())}};
  Json json = {{"calls", Json::array({call})}, {"source", to_line(request.message)}};
  if (request.message.contains("at_step")) json["at_step"] = request.message["at_step"];
  auto order = order_from_json(json);
  if (!order) return request.answer(tl::unexpected(order.error()));
  const auto timeout_s = timeout_of(request.message);
  const bool waits = request.message.value("wait", false);
  const bool far = order->at_step.has_value() && waits;
  const OrderDesk::Until until =
      order->at_step && !waits ? OrderDesk::Until::committed : OrderDesk::Until::final;
  const auto ref = api.orders.submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  const auto applied = [&api, client = request.client.id, timeout_s, waits,
                        answer = request.answer](Result<Json> report) {
    if (!waits || !report || report->value("state", "") != "applied") return answer(std::move(report));
    api.orders.wait_call(client, report->value("id", std::uint64_t{0}), 0, timeout_s, answer,
                         /*of_script=*/false);
  };
  api.orders.answer_with_outcome(
      request.client.id, *ref, until,
      waits && !far ? kOrderTimeout_s : timeout_s.value_or(far ? kForEver_s : kOrderTimeout_s), applied);
}

void order(Api& api, Request& request) {
  auto order = order_from_json(request.message.value("order", Json::object()));
  if (!order) return request.answer(tl::unexpected(order.error()));
  const auto ref = api.orders.submit(request.client, *std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  request.answer(Json{{"ref", *ref}});
}

void orders(Api& api, Request& request) {
  Json list = api.host.book.list();
  fit(list);
  request.answer(std::move(list));
}

void wait_order(Api& api, Request& request) {
  const std::string until = request.message.value("until", "final");
  api.orders.wait({request.client.id, request.answer,
                   script_answer(request.client, "note", request.message.value("id", Json()))},
                  request.message.value("order", std::uint64_t{0}), request.message.value("ref", ""),
                  until == "now"         ? OrderDesk::Until::now
                  : until == "committed" ? OrderDesk::Until::committed
                                         : OrderDesk::Until::final,
                  timeout_of(request.message));
}

void wait_call(Api& api, Request& request) {
  api.orders.wait_call(request.client.id, request.message.value("order", std::uint64_t{0}),
                       request.message.value("call", std::int64_t{0}), timeout_of(request.message),
                       request.answer,
                       /*of_script=*/true);
}

void withdraw(Api& api, Request& request) {
  const OrderBook::Entry* entry =
      api.host.book.find(request.message.value("order", std::uint64_t{0}), request.message.value("ref", ""));
  if (entry == nullptr) return request.answer(fail(ErrorKind::usage, "there is no such order"));
  api.orders.withdraw(*entry);
  request.answer(Json::object());
}

void cancel(Api& api, Request& request) {
  const bool evaluation = request.message.value("evaluation", false);
  const auto id = request.message.value("order", std::uint64_t{0});
  const OrderBook::Entry* entry = api.host.book.find(id, "");
  if (entry == nullptr && !evaluation)
    return request.answer(fail(ErrorKind::usage, "there is no order " + std::to_string(id)));
  if (evaluation)
    api.host.to_rank({{"type", "cancel"}, {"evaluation", true}});
  else if (request.message.contains("call"))
    api.host.to_rank({{"type", "cancel"}, {"order", id}, {"call", request.message["call"].get<int>()}});
  else
    api.orders.withdraw(*entry);
  request.answer(Json::object());
}

}  // namespace footplate::host::operations
