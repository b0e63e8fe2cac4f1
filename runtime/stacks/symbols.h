#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace footplate {

/// What a person reads of each code address of this process, in the same order: "footplate::Trainer::run(…)",
/// "pthread_cond_wait (libc.so.6)" where it is of a library, "libtorch_cpu.so+0x1a2b3c" where no symbol
/// covers it. From the symbol tables of the files behind /proc/self/maps, local symbols included, in one pass
/// over each; takes no lock of the dynamic loader, which a hanging thread may hold. Any thread.
std::vector<std::string> name_addresses(const std::vector<std::uintptr_t>& addresses);

/// A symbol for people: demangled, without "(anonymous namespace)::", and where it is long with "…" for
/// what is between the brackets of templates, then of parameters.
std::string readable_symbol(const std::string& symbol);

}  // namespace footplate
