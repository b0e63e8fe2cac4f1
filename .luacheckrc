-- Configs and job scripts see what footplate-lua offers: groups of settings as tables whose fields are assigned, and
-- functions. Unknown fields are caught where they are used, by the schema.
std = "lua54"
max_line_length = 110
globals = {
  -- groups of settings, some with actions
  "run", "model", "train", "optim", "sched", "data", "eval", "ckpt", "comm", "nccl", "log", "metrics", "guard", "perf", "debug",
  -- kept in checkpoints
  "store",
}
read_globals = {
  "set", "undo", "at", "after", "every", "on", "command", "help", "settings", "status", "ranks", "orders", "journal", "jobs", "rules",
  "export",
}
