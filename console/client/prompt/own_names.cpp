#include "console/client/prompt/own_names.h"

#include <cwctype>
#include <string_view>
#include <vector>

#include "console/client/prompt/highlight.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kMostNames = 500;

bool is_of_name(wchar_t character) {
  return character < 0x80 && (std::iswalnum(static_cast<wint_t>(character)) != 0 || character == L'_');
}

/// A name, or one other character that isn't a blank, of Lua outside of strings and comments.
std::vector<std::wstring> words_of(std::wstring_view lua) {
  const std::vector<Token> tokens = highlight(lua);
  std::vector<std::wstring> words;
  bool in_word = false;
  for (std::size_t i = 0; i < lua.size(); ++i) {
    const bool text = tokens[i] == Token::string || tokens[i] == Token::comment;
    const bool of_name = !text && is_of_name(lua[i]);
    if (of_name && in_word)
      words.back() += lua[i];
    else if (!text && std::iswspace(static_cast<wint_t>(lua[i])) == 0)
      words.emplace_back(1, lua[i]);
    in_word = of_name;
  }
  return words;
}

}  // namespace

void add_own_names(const std::string& chunk, std::set<std::string>& names) {
  const std::vector<std::wstring> words = words_of(wide(chunk));
  const auto at = [&](std::size_t i) -> std::wstring_view {
    return i < words.size() ? std::wstring_view(words[i]) : std::wstring_view();
  };
  int depth = 0;  // of tables and calls, in which = is of a field
  for (std::size_t i = 0; i < words.size() && names.size() < kMostNames; ++i) {
    if (words[i] == L"{" || words[i] == L"(") ++depth;
    if (words[i] == L"}" || words[i] == L")") --depth;
    const std::wstring_view before = i > 0 ? at(i - 1) : std::wstring_view();
    const bool is_name =
        is_of_name(words[i].front()) && std::iswdigit(static_cast<wint_t>(words[i].front())) == 0;
    if (!is_name || depth > 0 || before == L"." || before == L":" || before == L"local" || before == L"for")
      continue;
    const bool assigned = at(i + 1) == L"=" && at(i + 2) != L"=";
    const bool defined = before == L"function" && at(i + 1) == L"(" && (i < 2 || at(i - 2) != L"local");
    if (assigned || defined) names.insert(utf8(words[i]));
  }
}

}  // namespace footplate
