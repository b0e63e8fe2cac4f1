// Writes the schema, as `footplate-rank --schema` prints it, for the programs that need no LibTorch.
#include <cstdio>

#include "runtime/schema/schema_table.h"

int main() {
  std::fputs(footplate::runtime_schema().to_json().dump(1).c_str(), stdout);
  std::fputc('\n', stdout);
  return 0;
}
