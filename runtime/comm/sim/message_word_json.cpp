#include "runtime/comm/sim/message_word_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

std::string word_of(const Json& message) {
  std::string word;
  if (!message.is_object()) return word;
  FieldReader field(message);
  field("t", word);
  return word;
}

}  // namespace footplate
