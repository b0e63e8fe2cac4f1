#include "runtime/stacks/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace footplate {
namespace {

/// A shorter name is shown as it is.
constexpr std::size_t kReadable = 80;
/// No name is longer.
constexpr std::size_t kLongest = 160;
/// A longer symbol isn't demangled: what it stands for may be longer by any factor.
constexpr std::size_t kMostMangled = 2048;
/// Symbols read at once.
constexpr std::size_t kBlock = 4096;
/// Program and section headers of a file; more are left out of account.
constexpr std::size_t kMostHeaders = 1024;

constexpr std::string_view kEllipsis = "…";

/// A part of a file that is mapped to be executed.
struct Mapping {
  std::uintptr_t first = 0, last = 0;
  std::uint64_t offset = 0;
  std::string path;
};

std::vector<Mapping> executable_mappings() {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0, offset = 0;
    std::array<char, 8> access{};
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &first, &last, access.data(), &offset,
                    &path) < 4)
      continue;
    if (access[2] == 'x') found.push_back({first, last, offset, line.substr(static_cast<std::size_t>(path))});
  }
  return found;
}

/// An address that is looked up in a file's table.
struct Wanted {
  std::uint64_t value = 0;  ///< as symbols have it
  std::size_t index = 0;    ///< among the places asked for
};

/// Of several names for one function the one that its users know: poll, not __poll; MPI_Send, not PMPI_Send.
bool is_better(const std::string& name, const std::string& than) {
  if (name.empty() || than.empty()) return than.empty();
  if (name.starts_with('_') != than.starts_with('_')) return than.starts_with('_');
  return name.size() < than.size();
}

/// The symbols of one file on the disk. Whatever it holds, no read goes beyond it.
class ElfFile {
 public:
  /// Of a descriptor that it closes, or -1.
  explicit ElfFile(int descriptor) : descriptor_(descriptor) {
    Elf64_Ehdr header{};
    if (!read(&header, 1, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
      return;
    segments_.resize(std::min<std::size_t>(header.e_phnum, kMostHeaders));
    if (!read(segments_.data(), segments_.size(), header.e_phoff)) segments_.clear();
    sections_.resize(std::min<std::size_t>(header.e_shnum, kMostHeaders));
    if (!read(sections_.data(), sections_.size(), header.e_shoff)) sections_.clear();
  }
  ~ElfFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  /// Where symbols have what stands at this place of the file.
  std::optional<std::uint64_t> value_at(std::uint64_t offset) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD && offset >= segment.p_offset &&
          offset - segment.p_offset < segment.p_filesz)
        return offset - segment.p_offset + segment.p_vaddr;
    return std::nullopt;
  }

  /// Puts the symbol that covers it into names[index] of each; `wanted` is sorted by value.
  void name(const std::vector<Wanted>& wanted, std::vector<std::string>& names) const {
    // Where it isn't stripped, .symtab has all that .dynsym has.
    const Elf64_Shdr* table = find(SHT_SYMTAB);
    if (table == nullptr) table = find(SHT_DYNSYM);
    if (table == nullptr || table->sh_link >= sections_.size()) return;
    const Elf64_Shdr& strings = sections_[table->sh_link];
    std::vector<Elf64_Sym> block;
    std::uint64_t left = table->sh_size / sizeof(Elf64_Sym);
    for (std::uint64_t at = table->sh_offset; left > 0; at += block.size() * sizeof(Elf64_Sym)) {
      block.resize(std::min<std::uint64_t>(left, kBlock));
      left -= block.size();
      if (!read(block.data(), block.size(), at)) return;
      for (const Elf64_Sym& symbol : block) name_covered(symbol, strings, wanted, names);
    }
  }

 private:
  template <class T>
  bool read(T* to, std::size_t count, std::uint64_t offset) const {
    const std::size_t bytes = count * sizeof(T);
    return descriptor_ >= 0 &&
           ::pread(descriptor_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }

  const Elf64_Shdr* find(std::uint32_t type) const {
    const auto found =
        std::ranges::find_if(sections_, [type](const Elf64_Shdr& one) { return one.sh_type == type; });
    return found == sections_.end() ? nullptr : &*found;
  }

  void name_covered(const Elf64_Sym& symbol, const Elf64_Shdr& strings, const std::vector<Wanted>& wanted,
                    std::vector<std::string>& names) const {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) return;
    auto covered = std::ranges::lower_bound(wanted, symbol.st_value, {}, &Wanted::value);
    for (; covered != wanted.end() && covered->value - symbol.st_value < symbol.st_size; ++covered) {
      std::string& name = names[covered->index];
      std::string another = text_at(strings, symbol.st_name);
      if (is_better(another, name)) name = std::move(another);
    }
  }

  std::string text_at(const Elf64_Shdr& strings, std::uint64_t place) const {
    if (place >= strings.sh_size) return "";
    std::string text(std::min(strings.sh_size - place, std::uint64_t{kMostMangled} + 1), '\0');
    if (!read(text.data(), text.size(), strings.sh_offset + place)) return "";
    return text.substr(0, text.find('\0'));
  }

  int descriptor_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
};

/// A program that was replaced on the disk since it was started can still be read by way of /proc.
std::string file_of(const std::string& path) {
  std::array<char, 4096> own{};
  const auto length = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  return length > 0 && path == own.data() ? "/proc/self/exe" : path;
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string without_symbol(const std::string& path, std::uint64_t place) {
  return fmt::format("{}+{:#x}", last_part(path), place);
}

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > kMostMangled) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : symbol;
}

void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
}

/// Length of what at `at` looks like a bracket and is the name of an operator, "operator" included.
std::size_t operator_at(const std::string& text, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  if (text.compare(at, kWord.size(), kWord) != 0) return 0;
  for (const std::string_view name :
       {"()", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=", ">=", "<", ">"})
    if (text.compare(at + kWord.size(), name.size(), name) == 0) return kWord.size() + name.size();
  return kWord.size();
}

/// The place after the bracket that closes the one at `at`.
std::size_t after_bracket(const std::string& text, std::size_t at, char open, char close) {
  int depth = 0, round = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (open == '<' && (c == '(' || c == ')')) round += c == '(' ? 1 : -1;
    if (round != 0) continue;  // (3 > 2) within a template's arguments
    if (c == open) ++depth;
    if (c == close && (close != '>' || text[at - 1] != '-') && --depth == 0) return at + 1;
  }
  return at;
}

/// "f<a<b>>(c)" becomes "f<…>(c)".
std::string collapsed(const std::string& text, char open, char close) {
  std::string shorter;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t length = operator_at(text, at); length > 0) {
      shorter += text.substr(at, length);
      at += length;
    } else if (text[at] != open) {
      shorter += text[at++];
    } else {
      const std::size_t end = after_bracket(text, at, open, close);
      shorter += open;
      if (end > at + 2) shorter += kEllipsis;
      shorter += close;
      at = end;
    }
  }
  return shorter;
}

std::string cut(std::string text) {
  if (text.size() <= kLongest) return text;
  std::size_t length = kLongest - kEllipsis.size();
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  text.resize(length);
  return text += kEllipsis;
}

}  // namespace

std::string readable_symbol(const std::string& symbol) {
  std::string text = demangled(symbol);
  remove_all(text, "(anonymous namespace)::");
  remove_all(text, "[abi:cxx11]");
  if (text.size() > kReadable) text = collapsed(text, '<', '>');
  if (text.size() > kReadable) text = collapsed(text, '(', ')');
  return cut(std::move(text));
}

CodePlaces places_of(const std::vector<std::uintptr_t>& addresses) {
  CodePlaces places;
  const std::vector<Mapping> mappings = executable_mappings();
  for (const std::uintptr_t address : addresses) {
    const auto in = std::ranges::find_if(mappings, [address](const Mapping& mapping) {
      return address >= mapping.first && address < mapping.last && !mapping.path.empty();
    });
    if (in == mappings.end()) {
      places.texts.push_back(fmt::format("{:#x}", address));
    } else {
      const std::uint64_t offset = address - in->first + in->offset;
      places.by_file[in->path].push_back({places.texts.size(), offset});
      places.texts.push_back(without_symbol(in->path, offset));
    }
  }
  return places;
}

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

std::vector<std::string> names_in(const std::string& path, const std::vector<CodePlace>& places,
                                  const OpenFile& open) {
  const std::string opened = file_of(path);
  const ElfFile file(open(opened));
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (const auto value = file.value_at(places[i].offset)) wanted.push_back({*value, i});
  std::ranges::sort(wanted, {}, &Wanted::value);
  std::vector<std::string> names(places.size());
  file.name(wanted, names);
  const std::string library = opened == path ? fmt::format(" ({})", last_part(path)) : "";
  for (std::size_t i = 0; i < places.size(); ++i)
    names[i] = names[i].empty()
                   ? without_symbol(path, file.value_at(places[i].offset).value_or(places[i].offset))
                   : readable_symbol(names[i]) + library;
  return names;
}

}  // namespace footplate
