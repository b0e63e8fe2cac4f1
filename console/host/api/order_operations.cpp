#include "console/host/api/operations.h"

#include <string>

#include "console/host/api/request_fields.h"

namespace footplate::host::operations {
namespace {

constexpr double kOrderTimeout_s = 30;  ///< where a request doesn't say
constexpr double kForEver_s = 1e9;

/// Takes a report to whoever gets JSON.
template <class Report>
AnswerOf<Report> as_json(const Answer& answer) {
  return [answer](const Result<Report>& report) {
    answer(report.map([](const Report& one) { return to_json(one); }));
  };
}

}  // namespace

void set(Api& api, Request& request, const SetRequest& fields) {
  Order order;
  order.source = to_line(request.line);
  order.at_step = fields.at_step;
  order.changes = fields.changes.changes;
  for (Change& change : order.changes) {  // "30m" becomes 1800, 10.0 becomes 10
    auto value = api.host.view.schema().check_live(change.name, to_json(change.value));
    if (!value) return request.answer(tl::unexpected(value.error()));
    change.value = *std::move(value);
  }
  const OrderUntil until = order.at_step ? OrderUntil::committed : OrderUntil::final;
  const auto ref = api.orders.submit(request.client, std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  api.orders.answer_with_outcome(request.client.id, *ref, until, fields.timeout_s.value_or(kOrderTimeout_s),
                                 as_json<OrderReport>(request.answer));
}

void call(Api& api, Request& request, const CallRequest& fields) {
  Order order;
  order.source = to_line(request.line);
  order.at_step = fields.at_step;
  order.calls.push_back({fields.action, fields.arguments});
  const bool far = fields.at_step && fields.wait;
  const OrderUntil until = fields.at_step && !fields.wait ? OrderUntil::committed : OrderUntil::final;
  const auto ref = api.orders.submit(request.client, std::move(order));
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  const auto applied = [&api, client = request.client.id, timeout_s = fields.timeout_s, waits = fields.wait,
                        answer = request.answer](Result<OrderReport> report) {
    if (!waits || !report || report->state != OrderState::applied)
      return as_json<OrderReport>(answer)(std::move(report));
    api.orders.wait_call(client, report->id, 0, timeout_s, as_json<CallReport>(answer), /*of_script=*/false);
  };
  const double otherwise_s = far ? kForEver_s : kOrderTimeout_s;
  const bool only_call_is_timed = fields.wait && !far;
  api.orders.answer_with_outcome(
      request.client.id, *ref, until,
      only_call_is_timed ? kOrderTimeout_s : fields.timeout_s.value_or(otherwise_s), applied);
}

void order(Api& api, Request& request, const OrderRequest& fields) {
  const auto ref = api.orders.submit(request.client, fields.order);
  if (!ref) return request.answer(tl::unexpected(ref.error()));
  request.answer(Json{{"ref", *ref}});
}

void orders(Api& api, Request& request) {
  Json list = Json::array();
  for (const OrderReport* report : api.host.book.list()) list.push_back(to_json(*report));
  fit(list);
  request.answer(std::move(list));
}

void wait_order(Api& api, Request& request, const WaitOrderRequest& fields) {
  api.orders.wait({request.client.id, as_json<OrderReport>(request.answer), request.note}, fields.order,
                  fields.ref, fields.until, fields.timeout_s);
}

void wait_call(Api& api, Request& request, const WaitCallRequest& fields) {
  api.orders.wait_call(request.client.id, fields.order, fields.call, fields.timeout_s,
                       as_json<CallReport>(request.answer), /*of_script=*/true);
}

void withdraw(Api& api, Request& request, const WithdrawRequest& fields) {
  const OrderBook::Entry* entry = api.host.book.find(fields.order, fields.ref);
  if (entry == nullptr) return request.answer(fail(ErrorKind::usage, "there is no such order"));
  api.orders.withdraw(*entry);
  request.answer(Json::object());
}

void cancel(Api& api, Request& request, const CancelRequest& fields) {
  const OrderBook::Entry* entry = api.host.book.find(fields.order, "");
  if (entry == nullptr && !fields.evaluation)
    return request.answer(fail(ErrorKind::usage, "there is no order " + std::to_string(fields.order)));
  if (fields.evaluation)
    api.host.to_rank(CancelEvaluation{});
  else if (fields.call)
    api.host.to_rank(CancelCall{fields.order, *fields.call});
  else
    api.orders.withdraw(*entry);
  request.answer(Json::object());
}

}  // namespace footplate::host::operations
