#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/api/catalogue.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/metric_names.h"
#include "console/lua/session/session.h"
#include "protocol/messages/reports.h"

// ranks[0], #ranks, pairs(ranks), metrics.loss: the latest that rank 0 has told the console.

namespace footplate::lua {
namespace {

std::vector<RankStatus> all_ranks(lua_State* state) {
  return session_of(state).look(request::Status{}).ranks;
}

int ranks_index(lua_State* state) {
  if (lua_type(state, 2) == LUA_TSTRING) {
    const std::string name = string_argument(state, 2);
    const Registration* registered = find_registration("ranks." + name);
    if (registered == nullptr)
      throw ScriptError("there is no ranks." + name + "; there are ranks[0], #ranks and ranks.stacks()");
    push_registered(state, *registered);
    return 1;
  }
  const auto ranks = all_ranks(state);
  const lua_Integer wanted = number_in_brackets(state, "ranks[0]");
  for (const RankStatus& rank : ranks) {
    if (rank.rank != wanted) continue;
    push_json(state, to_json(rank));
    return 1;
  }
  throw ScriptError("there is no rank " + std::to_string(wanted) + "; there are " +
                    std::to_string(ranks.size()) + ", from 0 on");
}

int ranks_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(all_ranks(state).size()));
  return 1;
}

/// for rank, of_it in pairs(ranks): from 0 on
int ranks_pairs(lua_State* state) {
  return push_pairs(state, all_ranks(state), [state](const RankStatus& rank) {
    lua_pushinteger(state, rank.rank);
    push_json(state, to_json(rank));
  });
}

int ranks_call(lua_State* state) {
  const std::vector<RankStatus> ranks = all_ranks(state);
  push_listing(state, list_of(ranks), without_newline(render_ranks(ranks)));
  return 1;
}

/// "1000 to 9999", "0"
std::string sizes(std::int64_t at_least) {
  if (at_least == 0) return "0";
  return std::to_string(at_least) + " to " + std::to_string(at_least * 10 - 1);
}

double mean_ms(const CountedCollectives& counted) {
  return counted.count > 0 ? counted.total_ms / static_cast<double>(counted.count) : 0;
}

double mb_per_s(const CountedCollectives& counted) {
  return counted.total_ms > 0 ? static_cast<double>(counted.bytes) / 1e3 / counted.total_ms : 0;
}

/// One line of comm.report(); means are of the time from an operation's start to its end.
std::vector<std::string> pattern_row(const CountedCollectives& counted) {
  return {std::to_string(counted.rank),
          counted.kind,
          sizes(counted.at_least),
          std::to_string(counted.count),
          rounded(mean_ms(counted)) + " ms",
          rounded(counted.longest_ms) + " ms",
          rounded(mb_per_s(counted)) + " MB/s",
          std::to_string(counted.overdue)};
}

Json all_metrics(lua_State* state) {
  return session_of(state).look(request::Metrics{}).values;
}

/// metrics["train/loss"], or metrics.loss where only one metric ends in it; train/ is looked at first.
int metrics_index(lua_State* state) {
  const Json metrics = all_metrics(state);
  const std::string name = string_argument(state, 2);
  const auto found = metric_meant(metrics, name);
  if (!found) {
    std::vector<std::string> known;
    for (const auto& [key, value] : metrics.items()) known.push_back(key);
    const std::string near = nearest(name, known);
    throw ScriptError("unknown metric '" + name + "'" +
                      (known.empty()  ? "; nothing has been logged yet"
                       : near.empty() ? "; metrics() has them all"
                                      : "; did you mean metrics[\"" + near + "\"]?"));
  }
  push_json(state, metrics[*found]);
  return 1;
}

/// for name, value in pairs(metrics)
int metrics_pairs(lua_State* state) {
  const Json metrics = all_metrics(state);
  lua_newtable(state);
  lua_Integer count = 0;
  for (const auto& [name, value] : metrics.items()) {
    push_json(state, name);
    lua_rawseti(state, -2, ++count);
    push_json(state, value);
    lua_rawseti(state, -2, ++count);
  }
  return push_pairs(state);
}

int metrics_call(lua_State* state) {
  push_json(state, all_metrics(state));
  return 1;
}

int metrics_text(lua_State* state) {
  const Json metrics = all_metrics(state);
  push_json(state, metrics);
  push_text(state, metrics.empty() ? "nothing has been logged yet" : render(state, -1));
  return 1;
}

int refuse_view_write(lua_State*) {
  throw ScriptError("ranks and metrics can only be read");
}

int comm_report(lua_State* state) {
  const auto report = session_of(state).look_at_ranks(request::CommReport{});
  Json patterns = list_of(report.patterns);
  std::vector<std::vector<std::string>> rows{
      {"rank", "operation", "elements", "count", "mean", "longest", "rate", "past its deadline"}};
  for (std::size_t i = 0; i < report.patterns.size(); ++i) {
    rows.push_back(pattern_row(report.patterns[i]));
    patterns[i].update(
        {{"mean_ms", mean_ms(report.patterns[i])}, {"mb_per_s", mb_per_s(report.patterns[i])}});
  }
  std::string text = rows.size() > 1 ? without_newline(table(rows)) : "no collective has been counted yet";
  for (const SettingProposal& proposal : report.proposals) text += "\nproposed: " + proposal.text;
  push_listing(state, patterns, text);
  return 1;
}

int push_ranks(lua_State* state) {
  constexpr luaL_Reg kMethods[] = {{"__index", bound<ranks_index>},
                                   {"__newindex", bound<refuse_view_write>},
                                   {"__call", bound<ranks_call>},
                                   {"__json", bound<ranks_call>},
                                   {"__pairs", bound<ranks_pairs>},
                                   {"__ipairs", bound<ranks_pairs>},
                                   {"__len", bound<ranks_length>},
                                   {"__tostring", bound<text_of_contents<ranks_call>>},
                                   {nullptr, nullptr}};
  push_locked_object(state, kMethods);
  return 1;
}

int push_metrics(lua_State* state) {
  constexpr luaL_Reg kMethods[] = {{"__index", bound<metrics_index>},
                                   {"__newindex", bound<refuse_view_write>},
                                   {"__call", bound<metrics_call>},
                                   {"__json", bound<metrics_call>},
                                   {"__pairs", bound<metrics_pairs>},
                                   {"__tostring", bound<metrics_text>},
                                   {nullptr, nullptr}};
  push_locked_object(state, kMethods);
  return 1;
}

constexpr Registration kViewFunctions[] = {
    {.doc = {.name = "metrics",
             .role = Role::view,
             .example = "metrics[\"train/loss\"] or metrics.loss",
             .help = "the latest value of a metric; metrics() has all of them",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_metrics>},
    {.doc = {.name = "ranks",
             .role = Role::view,
             .example = "ranks[0]",
             .help = "one rank; #ranks is their number; for rank, it in pairs(ranks)",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_ranks>},
    {.doc = {.name = "comm.report",
             .role = Role::view,
             .example = "comm.report()",
             .help = "the collectives of each rank so far, by operation and size: how many, how long, how "
                     "fast, how many past their deadline"},
     .handler = bound<comm_report>},
};

}  // namespace

std::span<const Registration> view_functions() {
  return kViewFunctions;
}

}  // namespace footplate::lua
