#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/lua/reference/function_docs.h"
#include "protocol/messages/enum_words.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

enum class CompletionKind { setting, action, function, group, parameter, method, value };
template <>
struct EnumWords<CompletionKind> {
  static constexpr std::array kAll{std::pair{CompletionKind::setting, std::string_view("setting")},
                                   std::pair{CompletionKind::action, std::string_view("action")},
                                   std::pair{CompletionKind::function, std::string_view("function")},
                                   std::pair{CompletionKind::group, std::string_view("group")},
                                   std::pair{CompletionKind::parameter, std::string_view("parameter")},
                                   std::pair{CompletionKind::method, std::string_view("method")},
                                   std::pair{CompletionKind::value, std::string_view("value")}};
};

/// What may stand in place of an unfinished name.
struct Completion {
  std::string text;
  CompletionKind kind = CompletionKind::setting;
  std::string note;  ///< for people
};

/// The answer to `complete`.
struct Completions {
  std::size_t start = 0;  ///< byte where the unfinished name begins
  std::vector<Completion> items;
  bool in_text = false;  ///< of a string or a comment
};
Json to_json(const Completions& completions);

/// Names of the run's own, which no schema has.
struct CompletionNames {
  std::vector<std::string> metrics = {};  ///< "train/loss"
  std::vector<std::string> tags = {};     ///< of checkpoints
  std::vector<std::string> stored = {};   ///< in store
};

/// What may follow `code` at its end. From names alone; nothing is evaluated.
Completions complete(const Schema& schema, const Settings& settings, FunctionDocs functions,
                     std::string_view code, const CompletionNames& names = {});

/// The same as docs/protocol.md has it.
Json completions(const Schema& schema, const Settings& settings, FunctionDocs functions,
                 std::string_view code, const CompletionNames& names = {});

}  // namespace footplate
