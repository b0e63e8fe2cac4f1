#pragma once

#include "console/host/api/operation.h"
#include "console/host/api/operation_requests.h"

// One function for each operation of docs/protocol.md; the table in operation_table.cpp has their names. Each
// answers the request, or leaves a wait that does.

namespace footplate::host::operations {

// run_operations.cpp: what is known of the run
void comm_report(Api& api, Request& request);
void comm_dump(Api& api, Request& request);
void drop(Api& api, Request& request, const DropRequest& fields);
void get(Api& api, Request& request, const GetRequest& fields);
void checkpoints(Api& api, Request& request);
void journal(Api& api, Request& request);
void metrics(Api& api, Request& request);
void pending(Api& api, Request& request);
void schema(Api& api, Request& request);
void stacks(Api& api, Request& request, const StacksRequest& fields);
void status(Api& api, Request& request);
void store(Api& api, Request& request);

// order_operations.cpp
void call(Api& api, Request& request, const CallRequest& fields);
void cancel(Api& api, Request& request, const CancelRequest& fields);
void order(Api& api, Request& request, const OrderRequest& fields);
void orders(Api& api, Request& request);
void set(Api& api, Request& request, const SetRequest& fields);
void wait_call(Api& api, Request& request, const WaitCallRequest& fields);
void wait_order(Api& api, Request& request, const WaitOrderRequest& fields);
void withdraw(Api& api, Request& request, const WithdrawRequest& fields);

// person_operations.cpp: what a person at a prompt needs
void answer(Api& api, Request& request, const AnswerRequest& fields);
void attach(Api& api, Request& request, const AttachRequest& fields);
void bye(Api& api, Request& request);
void complete(Api& api, Request& request, const CompleteRequest& fields);
void eval(Api& api, Request& request, const EvalRequest& fields);
void help(Api& api, Request& request, const HelpRequest& fields);
void interrupt(Api& api, Request& request);
void ping(Api& api, Request& request);
void role(Api& api, Request& request, const RoleRequest& fields);
void subscribe(Api& api, Request& request, const SubscribeRequest& fields);

// script_operations.cpp: waits, rules and jobs
void job_off(Api& api, Request& request, const JobOffRequest& fields);
void jobs(Api& api, Request& request);
void rule(Api& api, Request& request, const RuleRequest& fields);
void rule_off(Api& api, Request& request, const RuleOffRequest& fields);
void rules(Api& api, Request& request);
void wait_answer(Api& api, Request& request, const WaitAnswerRequest& fields);
void wait_event(Api& api, Request& request, const WaitEventRequest& fields);
void wait_lines(Api& api, Request& request, const WaitLinesRequest& fields);
void wait_rules(Api& api, Request& request, const WaitRulesRequest& fields);
void wait_seconds(Api& api, Request& request, const WaitSecondsRequest& fields);
void wait_step(Api& api, Request& request, const WaitStepRequest& fields);

}  // namespace footplate::host::operations
