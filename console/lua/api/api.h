#pragma once

#include <lua.hpp>
#include <memory>
#include <string>

#include "console/lua/session/stage.h"

namespace footplate::lua {

/// Each adds its names to the table at stack index `own`.
void open_groups(lua_State* state,
                 int own);  ///< log, optim, eval, …: settings as fields, actions as functions
void open_orders(lua_State* state, int own);     ///< orders, set, at, undo; handles
void open_functions(lua_State* state, int own);  ///< print, status, help, settings, journal
void open_views(lua_State* state, int own);      ///< ranks, metrics

void open_rules(lua_State* state, int own);  ///< every, after, on, rules
void open_jobs(lua_State* state, int own);   ///< jobs
void open_store(lua_State* state, int own);  ///< store

/// What a script of the owner's own gets besides: io, os and arg. Bounded nowhere.
void open_trusted(lua_State* state, int own, int environment);

/// at(step, function) and run.stop_when(function): pushes the rule's handle.
int register_at(lua_State* state);
int register_stop_when(lua_State* state);

/// comm.report(): counts of collectives, by rank, operation and size.
int comm_report(lua_State* state);

/// eval.cancel(): gives up the evaluation that is under way.
int eval_cancel(lua_State* state);

/// comm.drop(rank): kills a rank that is stuck.
int comm_drop(lua_State* state);

/// nccl.preset("ethernet") and nccl.show().
int nccl_preset(lua_State* state);
int nccl_show(lua_State* state);
/// nccl.ras(): what NCCL itself says of the run's communicators.
int nccl_ras(lua_State* state);
/// nccl.try{ set = …, steps = …, keep_if = … } and nccl.tune{ budget_steps = … }.
int nccl_try(lua_State* state);
int nccl_tune(lua_State* state);

/// try{ set = …, steps = …, metric = …, keep_if = … }: the same for any settings, by what is logged.
int try_settings(lua_State* state);

/// ranks.stacks(rank): where the threads of one rank are, or of all.
int ranks_stacks(lua_State* state);

/// Pushes a handle of an order (`call` < 0) or of one of its calls.
void push_handle(lua_State* state, std::shared_ptr<StagedOrder> order, int call);

/// Stages the fields of the table at `index`: { every = 10 } within `group`, or { log = { every = 10 } } and
/// { ["log.every"] = 10 } where `group` is empty. A field `expect` holds expected values of the same shape;
/// with force = true nobody is asked about them.
void stage_table(lua_State* state, int index, const std::string& group);

/// The text of help(name): a setting, an action, a group or a function.
std::string help_text(class Session& session, const std::string& name);

}  // namespace footplate::lua
