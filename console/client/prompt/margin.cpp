#include "console/client/prompt/margin.h"

#include <algorithm>

#include "console/client/prompt/highlight.h"

namespace footplate {
namespace {

/// Whether the newline at `place` begins a row with a margin.
bool begins_one(std::wstring_view text, const std::vector<Token>& tokens, std::size_t place) {
  return text[place] == L'\n' && tokens[place] == Token::plain;
}

}  // namespace

std::wstring with_margin(std::wstring_view text) {
  const std::vector<Token> tokens = highlight(text);
  std::wstring out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (begins_one(text, tokens, i)) out += kMargin;
  }
  return out;
}

std::wstring without_margin(std::wstring_view text) {
  const std::vector<bool> margin = margins(text);
  std::wstring out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!margin[i]) out += text[i];
  return out;
}

bool gets_margin(std::wstring_view text) {
  return highlight(std::wstring(text) + L'\n').back() == Token::plain;
}

std::vector<bool> margins(std::wstring_view text) {
  const std::vector<Token> tokens = highlight(text);
  std::vector<bool> margin(text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_one(text, tokens, i) && text.substr(i + 1).starts_with(kMargin))
      std::fill_n(margin.begin() + static_cast<std::ptrdiff_t>(i) + 1, kMargin.size(), true);
  return margin;
}

}  // namespace footplate
