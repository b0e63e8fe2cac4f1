#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace footplate {

/// One of some code addresses, by the place in the file that is mapped there.
struct CodePlace {
  std::size_t index = 0;  ///< among the addresses
  std::uint64_t offset = 0;
};

/// Code addresses of this process.
struct CodePlaces {
  std::map<std::string, std::vector<CodePlace>> by_file;  ///< those of files, by path
  /// Of each without its symbol, in their order: "libtorch_cpu.so+0x1a2b3c", the place in the file; "0x7f12"
  /// where it was made at run time.
  std::vector<std::string> texts;
};

/// From /proc/self/maps alone: waits for no disk. Any thread.
CodePlaces places_of(const std::vector<std::uintptr_t>& addresses);

/// Opens a file for reading: its descriptor, or -1. Where the file's disk doesn't answer it never returns.
using OpenFile = std::function<int(const std::string& path)>;
int open_file(const std::string& path);

/// What a person reads of places in one file, in the same order: "footplate::Trainer::run(…)",
/// "pthread_cond_wait (libc.so.6)" where it is of a library, "libtorch_cpu.so+0x1a2b3c" where no symbol
/// covers it. From the file's symbol table, local symbols included, in one pass over it; takes no lock of the
/// dynamic loader, which a hanging thread may hold. Takes as long as the file's disk does. Any thread.
std::vector<std::string> names_in(const std::string& path, const std::vector<CodePlace>& places,
                                  const OpenFile& open = open_file);

/// A symbol for people: demangled, without "(anonymous namespace)::", and where it is long with "…" for
/// what is between the brackets of templates, then of parameters.
std::string readable_symbol(const std::string& symbol);

}  // namespace footplate
