#pragma once

namespace footplate::lua {

/// footplate-lua --check: reads {"schema", "settings", "user", "scripts": [{"path", "code", "arguments"}]}
/// from stdin and runs each script up to its first wait, as a job of a run that hasn't begun, with nobody to
/// send anything to. Prints a line of JSON for each: {"path", "rules": [spec], "order", "waits"} or {"path",
/// "error"}. Returns the exit code. Without a console: for `footplate check --script` and, before anything is
/// started, `footplate run --script`.
int check_scripts();

}  // namespace footplate::lua
