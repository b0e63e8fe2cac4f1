#include "console/client/prompt/highlight.h"

#include <algorithm>
#include <array>
#include <cwctype>
#include <string>

namespace footplate {
namespace {

constexpr std::array<std::wstring_view, 22> kKeywords{
    L"and",      L"break",  L"do",   L"else", L"elseif", L"end",  L"false", L"for",
    L"function", L"goto",   L"if",   L"in",   L"local",  L"nil",  L"not",   L"or",
    L"repeat",   L"return", L"then", L"true", L"until",  L"while"};

bool is_name(wchar_t character) {
  return character < 0x80 && (std::iswalnum(static_cast<wint_t>(character)) != 0 || character == L'_');
}

bool is_digit(wchar_t character) {
  return character >= L'0' && character <= L'9';
}

/// Reads Lua from the left, a token at a time.
class Scanner {
 public:
  explicit Scanner(std::wstring_view lua) : lua_(lua), tokens_(lua.size(), Token::plain) {
    while (at_ < lua_.size()) step();
  }
  std::vector<Token> take() { return std::move(tokens_); }

 private:
  bool here(std::wstring_view text) const { return lua_.substr(at_, text.size()) == text; }

  void mark_to(std::size_t end, Token token) {
    end = std::min(end, lua_.size());
    std::fill(tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
              tokens_.begin() + static_cast<std::ptrdiff_t>(end), token);
    at_ = end;
  }

  /// The level of a long bracket that opens at `from`: [==[ has 2; -1: none does.
  int level_at(std::size_t from) const {
    if (from >= lua_.size() || lua_[from] != L'[') return -1;
    std::size_t next = from + 1;
    while (next < lua_.size() && lua_[next] == L'=') ++next;
    return next < lua_.size() && lua_[next] == L'[' ? static_cast<int>(next - from - 1) : -1;
  }

  void long_text(std::size_t from, int level, Token token) {
    const std::wstring closing = L"]" + std::wstring(static_cast<std::size_t>(level), L'=') + L"]";
    const std::size_t close = lua_.find(closing, from + 1);
    mark_to(close == std::wstring_view::npos ? lua_.size() : close + closing.size(), token);
  }

  void short_string() {
    const wchar_t quote = lua_[at_];
    std::size_t end = at_ + 1;
    for (; end < lua_.size() && lua_[end] != quote && lua_[end] != L'\n'; ++end)
      if (lua_[end] == L'\\') ++end;
    const bool closed = end < lua_.size() && lua_[end] == quote;
    mark_to(closed ? end + 1 : end, Token::string);
  }

  void word() {
    std::size_t end = at_;
    while (end < lua_.size() && is_name(lua_[end])) ++end;
    const std::wstring_view name = lua_.substr(at_, end - at_);
    const bool known = std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
    mark_to(end, known ? Token::keyword : Token::plain);
  }

  /// Generous about what a number may have: 0x1p-4, 3e-4.
  void number() {
    std::size_t end = at_;
    for (; end < lua_.size() && (is_name(lua_[end]) || lua_[end] == L'.' || is_sign_of_exponent(end));
         ++end) {
    }
    mark_to(end, Token::number);
  }
  bool is_sign_of_exponent(std::size_t place) const {
    if (lua_[place] != L'-' && lua_[place] != L'+') return false;
    const wchar_t before = lua_[place - 1] | 0x20;
    const bool hexadecimal = lua_.substr(at_, 2) == L"0x" || lua_.substr(at_, 2) == L"0X";
    return before == (hexadecimal ? L'p' : L'e');
  }

  void step() {
    const wchar_t character = lua_[at_];
    if (here(L"--")) {
      const int level = level_at(at_ + 2);
      if (level >= 0) return long_text(at_ + 2, level, Token::comment);
      return mark_to(std::min(lua_.find(L'\n', at_), lua_.size()), Token::comment);
    }
    if (const int level = level_at(at_); level >= 0) return long_text(at_, level, Token::string);
    if (character == L'"' || character == L'\'') return short_string();
    if (is_digit(character)) return number();
    if (is_name(character)) return word();
    ++at_;
  }

  std::wstring_view lua_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> highlight(std::wstring_view lua) {
  return Scanner(lua).take();
}

}  // namespace footplate
