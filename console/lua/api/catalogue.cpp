#include "console/lua/api/catalogue.h"

#include <array>

#include "console/lua/api/api.h"
#include "console/lua/session/session.h"
#include "console/lua/trials/trial_functions.h"

namespace footplate::lua {
namespace {

/// A file of functions each, in the order in which help() lists them.
constexpr std::array kFiles = {
    change_functions,  rule_functions, job_functions,        store_functions,   try_functions,
    branch_functions,  undo_functions, order_functions,      looking_functions, checkpoint_functions,
    at_once_functions, view_functions, ledger_functions,     stack_functions,   run_functions,
    output_functions,  nccl_functions, nccl_trial_functions,
};

}  // namespace

std::vector<Registration> catalogue() {
  std::vector<Registration> all;
  for (const auto& file : kFiles)
    for (const Registration& registration : file()) all.push_back(registration);
  return all;
}

std::vector<FunctionDoc> catalogue_docs() {
  std::vector<FunctionDoc> docs;
  for (const Registration& registration : catalogue()) docs.push_back(registration.doc);
  return docs;
}

const Registration* find_registration(std::string_view name) {
  for (const auto& file : kFiles)
    for (const Registration& registration : file())
      if (registration.doc.name == name) return &registration;
  return nullptr;
}

void push_registered(lua_State* state, const Registration& registration) {
  if (registration.form == Form::function)
    lua_pushcfunction(state, registration.handler);
  else if (registration.form == Form::text)
    lua_pushnil(state);
  else
    registration.handler(state);
}

void open_names(lua_State* state, int own, int environment) {
  open_function_texts(state);
  open_groups(state, own);
  for (const Registration& registration : catalogue()) {
    const std::string_view name = registration.doc.name;
    if (registration.form == Form::text || name.find('.') != std::string_view::npos) continue;
    push_registered(state, registration);
    lua_setfield(state, own, registration.doc.name);
  }
  if (session_of(state).greeting().trusted()) open_trusted(state, own, environment);
}

}  // namespace footplate::lua
