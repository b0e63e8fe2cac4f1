#pragma once

#include <optional>

#include "console/host/api/operation.h"

// One function for each operation of docs/protocol.md; the table in operation_table.cpp has their names. Each
// answers the request, or leaves a wait that does. A field of the wrong type throws Json::exception.

namespace footplate::host::operations {

// run_operations.cpp: what is known of the run
void comm_report(Api& api, Request& request);
void drop(Api& api, Request& request);
void get(Api& api, Request& request);
void journal(Api& api, Request& request);
void metrics(Api& api, Request& request);
void pending(Api& api, Request& request);
void schema(Api& api, Request& request);
void stacks(Api& api, Request& request);
void status(Api& api, Request& request);
void store(Api& api, Request& request);

// order_operations.cpp
void call(Api& api, Request& request);
void cancel(Api& api, Request& request);
void order(Api& api, Request& request);
void orders(Api& api, Request& request);
void set(Api& api, Request& request);
void wait_call(Api& api, Request& request);
void wait_order(Api& api, Request& request);
void withdraw(Api& api, Request& request);

// person_operations.cpp: what a person at a prompt needs
void answer(Api& api, Request& request);
void attach(Api& api, Request& request);
void bye(Api& api, Request& request);
void complete(Api& api, Request& request);
void eval(Api& api, Request& request);
void help(Api& api, Request& request);
void interrupt(Api& api, Request& request);
void ping(Api& api, Request& request);
void role(Api& api, Request& request);
void subscribe(Api& api, Request& request);

// script_operations.cpp: waits, rules and jobs
void job_off(Api& api, Request& request);
void jobs(Api& api, Request& request);
void rule(Api& api, Request& request);
void rule_off(Api& api, Request& request);
void rules(Api& api, Request& request);
void wait_answer(Api& api, Request& request);
void wait_event(Api& api, Request& request);
void wait_lines(Api& api, Request& request);
void wait_rules(Api& api, Request& request);
void wait_seconds(Api& api, Request& request);
void wait_step(Api& api, Request& request);

}  // namespace footplate::host::operations
