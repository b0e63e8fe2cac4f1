#include "protocol/words.h"

namespace footplate {

std::string join(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += between;
    text += items[i];
  }
  return text;
}

}  // namespace footplate
