#pragma once

#include <lua.hpp>
#include <memory>
#include <span>
#include <string>

#include "console/lua/session/registration.h"
#include "console/lua/session/stage.h"

namespace footplate::lua {

// What each file registers.
std::span<const Registration> change_functions();      ///< set, at
std::span<const Registration> rule_functions();        ///< every, after, on, rules
std::span<const Registration> job_functions();         ///< jobs
std::span<const Registration> store_functions();       ///< store
std::span<const Registration> undo_functions();        ///< undo, redo
std::span<const Registration> branch_functions();      ///< branches
std::span<const Registration> order_functions();       ///< orders
std::span<const Registration> looking_functions();     ///< journal, status, settings, help
std::span<const Registration> checkpoint_functions();  ///< ckpt.list
std::span<const Registration> at_once_functions();     ///< eval.cancel, comm.drop
std::span<const Registration> view_functions();        ///< metrics, ranks, comm.report
std::span<const Registration> stack_functions();       ///< ranks.stacks
std::span<const Registration> ledger_functions();      ///< comm.dump
std::span<const Registration> run_functions();         ///< run.wait, run.stop_when, run.step, …
std::span<const Registration> output_functions();      ///< print
std::span<const Registration> nccl_functions();        ///< nccl.preset, nccl.show, nccl.ras

/// Puts the groups into the table at stack index `own`: log, optim, eval, …: settings as fields, actions and
/// registered names as functions.
void open_groups(lua_State* state, int own);

/// What a script of the owner's own gets besides: io, os and arg. Bounded nowhere.
void open_trusted(lua_State* state, int own, int environment);

/// Functions, which Lua would show as a pointer, show how they are called. Once per state.
void open_function_texts(lua_State* state);

/// The action that the function at stack index `index` calls; empty: it is another function.
std::string action_called(lua_State* state, int index);

/// at(step, function) and run.stop_when(function): pushes the rule's handle.
int register_at(lua_State* state);
int register_stop_when(lua_State* state);

/// Pushes a handle of an order (`call` < 0) or of one of its calls.
void push_handle(lua_State* state, std::shared_ptr<StagedOrder> order, int call);

}  // namespace footplate::lua
