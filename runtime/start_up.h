#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

/// Errors (usage): it isn't there, or not JSON.
Result<Json> read_json(const std::filesystem::path& path);

/// In the folder of the program that runs.
std::filesystem::path program_beside(const char* name);

/// Of whoever runs this; the number where there is no name.
std::string user_name();

/// Ends process `number`, which was to join a run and isn't one of its ranks: the run goes on without it. Any
/// thread.
[[noreturn]] void bow_out(int number, const std::string& why);

/// The largest order id in journal.lua; 0: none. Ids of a later start go on from there, so that a
/// number means one order in all of a run's files.
std::uint64_t last_journaled_order(const std::filesystem::path& journal);

/// Whether `source`, of a setting, names an order: it was changed live.
bool is_of_order(const std::string& source);

/// The settings that a resumed run starts with, and what people should know about them.
struct ResumedSettings {
  Settings settings;
  std::vector<std::string> differences;  ///< one line each: "sched.base_lr 0.002 -> 0.001 (order 12 (ann),
                                         ///< kept by the checkpoint)"
  Json given = Json::object();           ///< what `configured` won: {name: value}, for a replay
};

/// Precedence on resume: command line > changes made live, kept in the checkpoint > config > default.
/// `configured` is what this start was given, `saved` what the checkpoint holds, `saved_in` the start that
/// wrote it (0: another run's). What the command line of that start or an earlier one gave is a config's
/// equal: the live changes came later. One of `configured` that an order has set (ckpt.load) counts for most.
ResumedSettings merge_resumed(const Schema& schema, const Settings& configured, const Settings& saved,
                              std::int64_t saved_in);

/// A checkpoint's refusal by a model; a usage error that names them where settings of ResumedSettings::given
/// may be why.
Error with_differences(Error refusal, const Json& given);

}  // namespace footplate
