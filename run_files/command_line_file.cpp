#include "run_files/command_line_file.h"

#include "protocol/messages/fields.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {

template <>
struct FieldsOf<GivenSince> {
  static void list(auto& field, auto& given) {
    field("value", given.value);
    field("start", given.start);
  }
};

CommandLineFile read_command_line_file(const std::filesystem::path& run_directory) {
  CommandLineFile file;
  const auto json = read_json_file(run_directory / kCommandLineFile);
  if (!json || !json->is_object()) return file;
  for (const auto& [name, entry] : json->items())
    if (GivenSince given; read_fields(entry, given) && given.start >= 1) file[name] = std::move(given);
  return file;
}

Result<void> write_command_line_file(const std::filesystem::path& run_directory,
                                     const CommandLineFile& given) {
  return write_json_file(run_directory / kCommandLineFile, fields::write(given));
}

}  // namespace footplate
