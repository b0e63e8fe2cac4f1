#include "console/lua/session/computed_settings.h"

#include <utility>

#include "console/lua/session/session.h"

namespace footplate::lua {

void renew_computed(Session& session) {
  request::SettingsNow request;
  for (const SettingSpec& spec : session.schema().settings)
    if (!spec.knobs.empty()) request.names.push_back(spec.name);
  if (!request.names.empty()) session.settings_changed({session.look(request)});
}

const Value& value_read(Session& session, const std::string& name) {
  const SettingSpec* spec = session.schema().setting(name);
  if (spec != nullptr && !spec->knobs.empty()) renew_computed(session);
  return session.stage().value(name);
}

}  // namespace footplate::lua
