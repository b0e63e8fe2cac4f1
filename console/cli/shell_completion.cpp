// footplate completion: a script with which a shell completes this command line, made from the table of
// commands.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "console/cli/commands.h"

namespace footplate {
namespace {

/// What can be proposed for a word of the command line.
enum class Proposed { nothing, runs, configs, settings, files, checkpoints, choices };

/// An option, or the words of a command that belong to none.
struct Completed {
  std::vector<std::string> names;  ///< "-n", "--ranks"; empty: words
  std::string title, help;
  bool takes_value = false;
  Proposed proposed = Proposed::nothing;
  std::string choices;  ///< with blanks between
};

struct CompletedCommand {
  std::string name, help;
  std::vector<Completed> options;
};

constexpr std::pair<std::string_view, Proposed> kProposals[] = {
    {"RUN", Proposed::runs},
    {"RUN|CHECKPOINT", Proposed::runs},
    {"CONFIG|KEY=VALUE", Proposed::configs},
    {"PATTERN", Proposed::settings},
    {"--run", Proposed::runs},
    {"--resume", Proposed::checkpoints},
    {"--script", Proposed::files},
    {"--file", Proposed::files},
    {"--hostfile", Proposed::files},
    {"--output", Proposed::files},
    {"--out", Proposed::files},
    {"--name", Proposed::runs},
};

/// Of a type "TEXT:{view,operate,admin}": its choices.
std::string choices_in(const std::string& type) {
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string list = type.substr(open + 1, close - open - 1);
  std::replace(list.begin(), list.end(), ',', ' ');
  return list;
}

Completed completed(const CLI::Option& option) {
  Completed one;
  one.help = option.get_description();
  one.takes_value = option.get_items_expected_max() > 0;
  for (const auto& name : option.get_snames()) one.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) one.names.push_back("--" + name);
  one.title = one.names.empty() ? option.get_name(true) : one.names.back();
  one.choices = choices_in(option.get_type_name());
  if (!one.choices.empty()) one.proposed = Proposed::choices;
  for (const auto& [name, proposed] : kProposals)
    if (one.title == name) one.proposed = proposed;
  return one;
}

std::vector<CompletedCommand> completed_commands() {
  CLI::App app;
  std::vector<CompletedCommand> list;
  for (const CommandEntry& entry : commands()) {
    CLI::App* command = app.add_subcommand(entry.name, entry.help);
    entry.declare(*command);
    CompletedCommand one{entry.name, entry.help, {}};
    for (const CLI::Option* option : command->get_options())
      if (!option->get_group().empty()) one.options.push_back(completed(*option));
    list.push_back(std::move(one));
  }
  return list;
}

std::string joined_words(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

// --- bash ---

std::string bash_proposal(const Completed& one) {
  switch (one.proposed) {
    case Proposed::runs:
      return "_footplate_lines < <(footplate ls --names 2>/dev/null)";
    case Proposed::configs:
      return "_footplate_configs";
    case Proposed::settings:
      return "_footplate_lines < <(footplate settings --names 2>/dev/null)";
    case Proposed::files:
      return "_footplate_files";
    case Proposed::checkpoints:
      return "_footplate_words auto; _footplate_files";
    case Proposed::choices:
      return "_footplate_words " + one.choices;
    case Proposed::nothing:
      break;
  }
  return ":";
}

constexpr const char* kBashHead =
    R"sh(# Completion of footplate for bash, made by `footplate completion bash`.
# Proposes what begins as the word does. Names come from folders: they are quoted, and never evaluated.

# Sets `typed`, what the word means, and `mark`, the quotation mark that it begins with.
_footplate_read() {
  local rest=$cur
  mark= typed=
  if [[ $rest == [\"\']* ]]; then mark=${rest:0:1} rest=${rest:1}; fi
  if [[ $mark == \' ]]; then typed=$rest; return; fi
  while [[ $rest == *\\* ]]; do
    typed+=${rest%%\\*}
    rest=${rest#*\\}
    typed+=${rest:0:1}
    rest=${rest:1}
  done
  typed+=$rest
}
# Sets `quoted`, as the word goes on. The home folder that somebody has typed, ~/ or ~name/, stays one.
_footplate_quote() {
  local home= character backslash='\' single="'\''"
  quoted=$1
  case $mark in
    \') quoted=${quoted//\'/"$single"} ;;
    \")
      for character in "$backslash" '"' '$' '`'; do quoted=${quoted//"$character"/"$backslash$character"}; done ;;
    *)
      if [[ $cur == "~"*/* && ${cur%%/*} != *\\* ]]; then home=${cur%%/*}; fi
      quoted=${quoted#"$home"}
      if [[ -n $quoted ]]; then printf -v quoted %q "$quoted"; fi
      quoted=$home$quoted ;;
  esac
}
_footplate_words() {
  local word quoted
  for word in "$@"; do
    [[ $word == "$typed"* ]] || continue
    _footplate_quote "$word"
    COMPREPLY+=("$quoted")
  done
}
_footplate_lines() {
  local -a lines
  mapfile -t lines
  _footplate_words "${lines[@]}"
}
_footplate_files() {
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
  compopt -o filenames 2>/dev/null
}
_footplate_configs() {
  local file
  for file in configs/*.lua configs/presets/*.lua; do
    [[ -e $file ]] || continue
    file=${file##*/}
    _footplate_words "${file%.lua}"
  done
  _footplate_lines < <(compgen -f -X '!*.lua' -- "$cur"; compgen -d -S / -- "$cur")
  if [[ $typed == *.* || -z ${COMPREPLY[*]} ]]; then
    _footplate_lines < <(footplate settings --names 2>/dev/null | sed 's/$/=/')
  fi
  compopt -o nospace 2>/dev/null
  if ((${#COMPREPLY[@]} == 1)) && [[ -z $mark && ${COMPREPLY[0]} != *[=/] ]]; then COMPREPLY[0]+=" "; fi
}
_footplate() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} mark typed
  COMPREPLY=()
  _footplate_read
  [[ $cur == = || $prev == = ]] && return
)sh";

std::string bash_script() {
  std::string names;
  std::string values;
  std::string rest;
  for (const CompletedCommand& command : completed_commands()) {
    names += command.name + " ";
    std::string options;
    std::string words = ":";
    for (const Completed& one : command.options) {
      for (const auto& name : one.names) options += name + " ";
      if (one.names.empty() && words == ":") words = bash_proposal(one);
      if (one.names.empty() || !one.takes_value) continue;
      std::vector<std::string> cases;
      for (const auto& name : one.names) cases.push_back("\"" + command.name + " " + name + "\"");
      values += "    " + joined_words(cases, "|") + ") " + bash_proposal(one) + "; return ;;\n";
    }
    rest += "    " + command.name + ") if [[ $cur == -* ]]; then _footplate_words " + options + "; else " +
            words + "; fi ;;\n";
  }
  return std::string(kBashHead) + "  if ((COMP_CWORD == 1)); then _footplate_words " + names +
         "help --help --version; return; fi\n  case \"${COMP_WORDS[1]} $prev\" in\n" + values +
         "  esac\n  case ${COMP_WORDS[1]} in\n" + rest + "  esac\n}\ncomplete -F _footplate footplate\n";
}

// --- zsh ---

/// Between single quotes and, as _arguments reads it, between brackets or colons.
std::string zsh_text(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else if (std::string_view("[]:\\").find(c) != std::string_view::npos)
      quoted += std::string("\\") + c;
    else
      quoted += c;
  }
  return quoted;
}

std::string zsh_proposal(const Completed& one) {
  switch (one.proposed) {
    case Proposed::runs:
      return "_footplate_runs";
    case Proposed::configs:
      return "_footplate_configs";
    case Proposed::settings:
      return "_footplate_settings";
    case Proposed::files:
      return "_files";
    case Proposed::checkpoints:
      return "_footplate_checkpoints";
    case Proposed::choices:
      return "(" + one.choices + ")";
    case Proposed::nothing:
      break;
  }
  return " ";
}

/// One argument of _arguments for each name.
std::string zsh_specs(const Completed& one) {
  if (one.names.empty()) return " \\\n      '*:" + zsh_text(one.title) + ":" + zsh_proposal(one) + "'";
  std::string specs;
  for (const auto& name : one.names)
    specs += " \\\n      '(" + joined_words(one.names, " ") + ")" + name + "[" + zsh_text(one.help) + "]" +
             (one.takes_value ? ":" + zsh_text(one.title) + ":" + zsh_proposal(one) : "") + "'";
  return specs;
}

constexpr const char* kZshHead = R"sh(#compdef footplate
# Completion of footplate for zsh, made by `footplate completion zsh`.
_footplate_runs() {
  local -a names=(${(f)"$(footplate ls --names 2>/dev/null)"})
  compadd -a names
}
_footplate_settings() {
  local -a names=(${(f)"$(footplate settings --names 2>/dev/null)"})
  compadd "$@" -a names
}
_footplate_checkpoints() { compadd auto; _files }
_footplate_configs() {
  local -a names=(configs/*.lua(N:t:r) configs/presets/*.lua(N:t:r))
  compadd -a names
  _files -g '*.lua'
  _footplate_settings -S =
}
_footplate() {
  if ((CURRENT == 2)); then
    local -a commands=(
)sh";

constexpr const char* kZshTail = R"sh(  esac
}
if [[ $funcstack[1] == _footplate ]]; then _footplate "$@"; else compdef _footplate footplate; fi
)sh";

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const CompletedCommand& command : completed_commands()) {
    names += "      '" + zsh_text(command.name) + ":" + zsh_text(command.help) + "'\n";
    std::string specs;
    for (const Completed& one : command.options)
      if (!one.names.empty() || specs.find(" '*:") == std::string::npos) specs += zsh_specs(one);
    cases += "    " + command.name + ") _arguments -s" + specs + " ;;\n";
  }
  return kZshHead + names +
         "    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  shift words\n"
         "  ((CURRENT--))\n  case $command in\n" +
         cases + kZshTail;
}

}  // namespace

Handler declare_completion(CLI::App& command) {
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command.footer("bash: source <(footplate completion bash)    zsh: source <(footplate completion zsh)");
  return [shell]() -> Result<int> {
    std::fputs((*shell == "bash" ? bash_script() : zsh_script()).c_str(), stdout);
    return 0;
  };
}

}  // namespace footplate
