#include "console/cli/record_status_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<StartingRank> {
  static void list(auto& field, auto& rank) {
    field("rank", rank.rank);
    field.unless_empty("host", rank.host);
    field("pid", rank.pid);
    field("phase", rank.phase);
  }
};

Json to_json(const RecordStatus& status) {
  FieldWriter field;
  field("run", status.run);
  field("state", status.state);
  field("step", status.step);
  field("directory", status.directory);
  field("result", status.result);
  std::vector<std::string> notes;
  if (status.start) notes.push_back(status.start->note);
  if (!status.ranks.empty()) notes.push_back(status.ranks + " ranks");
  field("notes", notes);
  if (status.start) field("ranks", status.start->ranks);
  return field.take();
}

}  // namespace footplate
