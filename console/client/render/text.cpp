#include "console/client/render/text.h"

#include <langinfo.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <cwchar>
#include <utility>

namespace footplate {
namespace {

constexpr wchar_t kReplacement = 0xfffd;

/// How many bytes a first byte announces, and its own bits; 0 for one that can't be first.
std::pair<std::size_t, wchar_t> announced(unsigned char byte) {
  if (byte < 0x80) return {1, byte};
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1f};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0f};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07};
  return {0, 0};
}

bool is_character(wchar_t value, std::size_t bytes) {
  constexpr std::array<wchar_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  return value >= kLeast[bytes] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
}

/// What people wrote · and → for, on a terminal without them.
std::string ascii_for(wchar_t character) {
  constexpr std::array<std::pair<wchar_t, const char*>, 8> kPlain{{{L'·', "|"},
                                                                   {L'…', "..."},
                                                                   {L'→', "->"},
                                                                   {L'–', "-"},
                                                                   {L'‘', "'"},
                                                                   {L'’', "'"},
                                                                   {L'“', "\""},
                                                                   {L'”', "\""}}};
  for (const auto& [special, plain] : kPlain)
    if (special == character) return plain;
  return "?";
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C1 controls (U+0080 … U+009F) arrive as 0xc2 0x80 … 0x9f and act like ESC on some terminals.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    const bool carriage_return = byte == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (carriage_return) continue;
    if ((byte >= 0x20 && byte != 0x7f && !c1) || byte == '\n' || byte == '\t') {
      out += text[i];
    } else {
      const auto shown = c1 ? static_cast<unsigned char>(text[++i]) : byte;
      out += {'\\', 'x', kHex[shown >> 4], kHex[shown & 15]};
    }
  }
  return out;
}

std::wstring wide(std::string_view text) {
  std::wstring out;
  for (std::size_t i = 0; i < text.size();) {
    auto [bytes, value] = announced(static_cast<unsigned char>(text[i]));
    bool good = bytes > 0 && i + bytes <= text.size();
    for (std::size_t k = 1; good && k < bytes; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      value = (value << 6) | (next & 0x3f);
    }
    good = good && is_character(value, bytes);
    out += good ? value : kReplacement;
    i += good ? bytes : 1;
  }
  return out;
}

std::string utf8(std::wstring_view text) {
  std::string out;
  for (const wchar_t character : text) {
    const auto value = static_cast<char32_t>(character);
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((value >> shift) & 0x3f)); };
    if (value < 0x80) {
      out += static_cast<char>(value);
    } else if (value < 0x800) {
      out += static_cast<char>(0xc0 | (value >> 6));
      tail(0);
    } else if (value < 0x10000) {
      out += static_cast<char>(0xe0 | (value >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xf0 | (value >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }
  return out;
}

int columns(wchar_t character) {
  if (character < 0x20 || character == 0x7f) return 2;
  return std::max(0, ::wcwidth(character));
}

std::string cut(std::string_view line, std::size_t width) {
  const std::wstring text = wide(line);
  std::size_t used = 0;
  std::size_t fits = 0;  // characters that leave room for the "…"
  for (std::size_t i = 0; i < text.size(); ++i) {
    used += static_cast<std::size_t>(columns(text[i]));
    if (used < width) fits = i + 1;
    if (used > width) return utf8(text.substr(0, fits)) + "…";
  }
  return std::string(line);
}

std::string with_blanks(std::string_view line) {
  constexpr std::size_t kTab = 8;
  std::wstring out;
  std::size_t used = 0;
  for (const wchar_t character : wide(line)) {
    const bool tab = character == L'\t';
    const std::size_t needs = tab ? kTab - used % kTab : static_cast<std::size_t>(columns(character));
    out += tab ? std::wstring(needs, L' ') : std::wstring(1, character);
    used += needs;
  }
  return utf8(out);
}

namespace {

std::size_t columns_of(std::wstring_view text) {
  std::size_t sum = 0;
  for (const wchar_t character : text) sum += static_cast<std::size_t>(columns(character));
  return sum;
}

/// One row, "log.every  10 steps  A line of metrics is logged once in this many steps".
std::wstring fit_row(const std::wstring& row, std::size_t width) {
  constexpr std::size_t kLeastRoom = 16;  // characters of a last column that is worth breaking
  std::size_t last = 0;                   // where the last column begins that has room
  for (std::size_t gap = row.find(L"  "); gap != std::wstring::npos; gap = row.find(L"  ", last)) {
    const std::size_t begin = row.find_first_not_of(L' ', gap);
    if (begin == std::wstring::npos || columns_of(row.substr(0, begin)) + kLeastRoom > width) break;
    last = begin;
  }
  const std::size_t indent = columns_of(row.substr(0, last));
  std::wstring out = row.substr(0, last), rest = row.substr(last);
  while (last > 0 && columns_of(rest) + indent > width) {
    std::size_t fits = 0;
    for (std::size_t used = 0; used + static_cast<std::size_t>(columns(rest[fits])) + indent <= width; ++fits)
      used += static_cast<std::size_t>(columns(rest[fits]));
    const std::size_t blank = rest.rfind(L' ', fits);
    const std::size_t end = blank == std::wstring::npos || blank == 0 ? fits : blank;
    out += rest.substr(0, end) + L"\n" + std::wstring(indent, L' ');
    rest.erase(0, end == blank ? end + 1 : end);
  }
  return out + rest;
}

}  // namespace

std::string fit_columns(std::string_view utf8_text, std::size_t width) {
  const std::wstring text = wide(utf8_text);
  if (text.find(L'\n') == std::wstring::npos) return std::string(utf8_text);
  std::wstring out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(L'\n', start), text.size());
    const std::wstring row = text.substr(start, end - start);
    out += (start == 0 ? L"" : L"\n") + (columns_of(row) > width ? fit_row(row, width) : row);
    start = end + 1;
  }
  return utf8(out);
}

bool locale_is_utf8() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

std::string in_locale(std::string_view text) {
  if (locale_is_utf8()) return std::string(text);
  std::string out;
  for (const wchar_t character : wide(text))
    out += character < 0x80 ? std::string(1, static_cast<char>(character)) : ascii_for(character);
  return out;
}

}  // namespace footplate
